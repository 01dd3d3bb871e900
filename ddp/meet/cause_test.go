package meet

import (
	"fmt"
	"testing"
	"time"
)

func TestFirstCause(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name string
		do   func(c *cause)
		want string // after do
		due  string // half a second later
	}{
		{"a rank gives up", func(c *cause) { c.gaveUp(3, "no memory") }, "3 no memory", "3 no memory"},
		{"the first of two that give up", func(c *cause) { c.gaveUp(3, "a"); c.gaveUp(2, "b") }, "3 a", "3 a"},
		{"a process ends", func(c *cause) { c.ended(5, "killed") }, "5 killed", "5 killed"},
		{"a symptom waits", func(c *cause) { c.reported(4, 5, "reset", at(0)) }, "", "5 rank 4 reports: reset"},
		{"the rank of a symptom says why", func(c *cause) { c.reported(4, 5, "reset", at(0)); c.gaveUp(5, "NaN") }, "5 NaN", "5 NaN"},
		{"the rank of a symptom was killed", func(c *cause) { c.reported(4, 5, "reset", at(0)); c.ended(5, "killed") }, "5 killed", "5 killed"},
		{"a victim ends before the cause is known", func(c *cause) { c.reported(4, 5, "reset", at(0)); c.ended(4, "killed") }, "5 rank 4 reports: reset",
			"5 rank 4 reports: reset"},
		{"a victim gives up", func(c *cause) { c.reported(4, 5, "reset", at(0)); c.gaveUp(4, "its peer went") }, "5 rank 4 reports: reset",
			"5 rank 4 reports: reset"},
		{"a third rank fails by itself", func(c *cause) { c.reported(4, 5, "reset", at(0)); c.gaveUp(2, "disk full") }, "2 disk full", "2 disk full"},
		{"a link breaks: both report, the first counts", func(c *cause) { c.reported(4, 5, "a", at(0)); c.reported(5, 4, "b", at(1)) }, "",
			"5 rank 4 reports: a"},
		{"most ranks report the same one", func(c *cause) {
			c.reported(5, 4, "a", at(0))
			c.reported(3, 5, "b", at(1))
			c.reported(3, 5, "again", at(2))
			c.reported(4, 5, "c", at(3))
		}, "", "5 rank 3 reports: b"},
		{"a rank that reports often counts once", func(c *cause) {
			c.reported(5, 4, "a", at(0))
			c.reported(3, 5, "b", at(1))
			c.reported(3, 5, "again", at(2))
		}, "", "4 rank 5 reports: a"},
		{"the rank had left", func(c *cause) { c.reported(4, 5, "end of stream", at(0)); c.left(5) }, "", ""},
		{"another report stays", func(c *cause) { c.reported(4, 5, "a", at(0)); c.reported(4, 6, "b", at(1)); c.left(5) }, "", "6 rank 4 reports: b"},
	} {
		var k cause
		say := func() string {
			if k.first == nil {
				return ""
			}
			return fmt.Sprint(k.first.Rank, " ", k.first.Reason)
		}
		c.do(&k)
		k.due(at(100))
		if got := say(); got != c.want {
			t.Errorf("%s: %q at once, want %q", c.name, got, c.want)
		}
		k.due(at(500))
		if got := say(); got != c.due {
			t.Errorf("%s: %q later, want %q", c.name, got, c.due)
		}
	}
}
