package perf

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/link"
)

// linkless reports whether no level knows the speed of its link, so that memory is what can be measured.
func linkless(ways []Way) bool {
	for _, w := range ways {
		if w.Bandwidth > 0 {
			return false
		}
	}
	return true
}

// copies is how many bytes a rank copies, of those of the call, when all memory of the call is read and written once, shared evenly by the ranks.
func copies(kind comm.Kind, w int) float64 {
	switch kind {
	case comm.ReduceScatter, comm.Reduce:
		return (1 + 1/float64(w)) / 2 // everything is read, a part is written
	}
	return 1
}

// three is a duration with three digits.
func three(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// Verdict says in one sentence what bounds the largest size.
func (s *Summary) Verdict() string {
	if len(s.Rows) == 0 {
		return "nothing was measured"
	}
	r := s.Rows[len(s.Rows)-1]
	at := fmt.Sprintf("%v of %s in %v", s.call.Kind, FormatBytes(r.Bytes), three(r.Median))
	if s.Size == 1 {
		return at + ": one rank exchanges nothing"
	}
	var slow *Way
	var most float64
	for i, w := range s.Levels {
		if w.Bandwidth <= 0 {
			continue
		}
		if t := w.Wire * float64(max(1, w.Sharing)) / w.Bandwidth; t > most {
			slow, most = &s.Levels[i], t
		}
	}
	switch {
	case slow != nil:
		part := most / r.Median.Seconds()
		text := fmt.Sprintf("%s: %.0f %% of the %s that the link measured", at, 100*part, link.Rate(slow.Bandwidth))
		if slow.Sharing > 1 {
			text += fmt.Sprintf(", which %d ranks share", slow.Sharing)
		}
		switch {
		case part > 1.05:
			text += "; it gives more now than when the ranks met"
		case slow.Latency > 0 && r.Median < 4*slow.Latency:
			text += fmt.Sprintf("; at this size its latency, %v, is the bound", three(slow.Latency))
		}
		return text
	case s.Copy > 0:
		bound := float64(r.Bytes) * copies(s.call.Kind, s.Size) / s.Copy
		return fmt.Sprintf("%s: %.0f %% of memory bandwidth (%d ranks copy %.1f GB/s each at the same time)",
			at, 100*bound/r.Median.Seconds(), s.Size, s.Copy/1e9)
	}
	return at + ": this transport does not tell the speed of its links"
}
