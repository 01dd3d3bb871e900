package remote

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/ddp/launch"
)

// table prints rows of a preflight.
type table struct {
	out   io.Writer
	names []string
	width []int
}

// row runs a check on n hosts at the same time and prints its line. The first row is the heading.
func (t *table) row(name string, check func(i int) cell, n int) error {
	cells := make([]cell, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { cells[i] = check(i) })
	}
	wg.Wait()
	if t.width == nil {
		for _, c := range cells {
			t.width = append(t.width, max(18, len(c.text)+2))
			t.names = append(t.names, c.text)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s", name)
	for i, c := range cells {
		mark := ""
		if c.red != "" {
			mark = "✗ "
		}
		fmt.Fprintf(&b, "%-*s", t.width[i], mark+c.text)
	}
	fmt.Fprintln(t.out, strings.TrimRight(b.String(), " "))
	var why []string
	hint := ""
	for i, c := range cells {
		if c.red != "" {
			why = append(why, fmt.Sprintf("%s: %s", t.names[i], strings.TrimPrefix(c.red, "remote: host "+t.names[i]+": ")))
			hint = c.hint
		}
	}
	if why == nil {
		return nil
	}
	msg := strings.Join(why, "\n")
	if hint != "" {
		msg += "\nhint: " + hint
	}
	return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("check %q failed\n%s", name, msg))
}
