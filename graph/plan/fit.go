package plan

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/gotrain/gotrain/npu"
)

// Fitted says what Fit has chosen.
type Fitted struct {
	Before int64   // arena without it, in bytes
	After  int64   // arena with it
	Least  int64   // the smallest arena that can be had
	Made   []Again // what is made again, in the order of choice
}

// TooSmall is the error of Fit where even everything cheap, made again, leaves more than the limit.
type TooSmall struct{ Most, Before, Least int64 }

func (e *TooSmall) Error() string {
	return fmt.Sprintf("activations and workspaces take %d bytes, or at least %d where everything cheap is recomputed, and the limit leaves %d", e.Before,
		e.Least, e.Most)
}

// Fit returns a plan whose arena is at most most bytes, by making cheap results of the forward pass again in the backward pass: as few of them as it takes,
// those first that cost the least traffic per byte. work gives the workspace of the kernel for an op. The choice depends on the plan, the workspaces and the
// limit alone, so ranks with equal plans choose the same. p is not changed.
func (p *Plan) Fit(t Target, most int64, work func(npu.Op) (int64, error)) (*Plan, *Fitted, error) {
	f := &Fitted{Before: p.Arena, After: p.Arena, Least: p.Arena}
	if p.Arena <= most {
		return p, f, nil
	}
	list := p.again(t)
	for i := range list {
		var err error
		if list[i].step.Work, err = work(list[i].step.Op); err != nil {
			return nil, nil, err
		}
	}
	best, err := p.apply(t, list)
	if err != nil {
		return nil, nil, err
	}
	if f.Least = min(p.Arena, best.Arena); best.Arena > most {
		return nil, f, &TooSmall{Most: most, Before: p.Arena, Least: f.Least}
	}
	n := sort.Search(len(list), func(n int) bool { // more of them need less memory, but for a few bytes
		q, failed := p.apply(t, list[:n])
		if err = errors.Join(err, failed); failed != nil || q.Arena > most {
			return false
		}
		best = q
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	f.After, f.Made = best.Arena, slices.Clone(list[:n])
	return best, f, nil
}
