package launch

import (
	"strings"
	"time"
)

// events passes what a host tells on to the supervisor.
type events struct {
	s    *supervisor
	from int // the host's first rank
	part Part
}

func (e events) rank(r int) *rank { return e.s.ranks[r-e.s.First] }

func (e events) Output(r int, stderr bool, lines []byte) { e.rank(r).out.print(stderr, lines) }

func (e events) Progress(_ int, text []byte) { e.s.console.progress(text) }

func (e events) Record(r int, rec Record, age time.Duration) {
	if e.s.Token != "" {
		rec.Reason = strings.ReplaceAll(rec.Reason, e.s.Token, "[token]")
	}
	e.rank(r).said.add(rec, time.Since(e.s.begin)-age)
}

func (e events) Exit(o Outcome, age time.Duration) {
	o.Host = e.rank(o.Rank).host.Name()
	o.After = max(0, time.Since(e.s.begin)-age)
	e.s.exits <- o
}

// Lost ends all ranks of the host that have not ended. The supervisor ignores those that have.
func (e events) Lost(reason error) {
	for i := range e.part.First.LocalWorld {
		r := e.from + i
		e.s.exits <- Outcome{Rank: r, Host: e.rank(r).host.Name(), Code: ExitUnavailable, Lost: reason.Error(), After: time.Since(e.s.begin)}
	}
}

func (e events) Say(text string) {
	if len(e.s.Hosts) > 1 {
		text = e.rank(e.from).host.Name() + ": " + text
	}
	e.s.console.say("%s", text)
}
