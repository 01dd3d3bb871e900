package tcp

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet"
)

// A rank that learns that others gave it up is a victim, with the exit code of victims: it is alive.
func TestAccusedIsVictim(t *testing.T) {
	c := &Comm{jobs: []int{4, 7}, rank: 1}
	mine := c.verdict(&meet.Fault{Rank: 7, Host: "b", Reason: "rank 4 reports: the connection broke"}, "allreduce #3")
	if launch.ExitCode(mine) != launch.ExitUnavailable || !launch.Victim(mine) ||
		!strings.Contains(mine.Error(), "(rank 7), although it is alive: rank 4 reports") {
		t.Errorf("code %d, victim %v: %v", launch.ExitCode(mine), launch.Victim(mine), mine)
	}
	its := c.verdict(&meet.Fault{Rank: 4, Host: "a", Reason: "gone"}, "allreduce #3")
	if blamed := launch.Blamed(its); len(blamed) != 1 || blamed[0] != 4 {
		t.Errorf("blames %v: %v", blamed, its)
	}
}
