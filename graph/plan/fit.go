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
// those first that cost the least traffic per byte. work gives the workspace of the kernel for an op. p is not changed.
//
// The order of choice depends on the plan alone, but workspaces differ between machines and numbers of threads, and with them the number of results that it
// takes. Ranks whose plans must be equal agree on it: agree gets the number that is enough here, and returns one that is not smaller; nil: this one decides.
func (p *Plan) Fit(t Target, most int64, work func(npu.Op) (int64, error), agree func(n int) (int, error)) (*Plan, *Fitted, error) {
	f := &Fitted{Before: p.Arena, After: p.Arena, Least: p.Arena}
	list, err := p.priced(t, work, p.Arena > most || agree != nil)
	if err != nil {
		return nil, nil, err
	}
	best, n := p, 0
	if p.Arena > most {
		if best, n, err = p.fewest(t, most, list, f); err != nil {
			return nil, f, err
		}
	}
	if agree != nil {
		enough := n
		if n, err = agree(n); err != nil {
			return nil, nil, err
		}
		if n = min(n, len(list)); n > enough { // more than there are: plans differ, which their fingerprints tell
			if best, err = p.apply(t, list[:n]); err != nil {
				return nil, nil, err
			}
		}
	}
	f.After, f.Made = best.Arena, slices.Clone(list[:n])
	return best, f, nil
}

// priced lists what could be made again, with workspaces.
func (p *Plan) priced(t Target, work func(npu.Op) (int64, error), wanted bool) (list []Again, err error) {
	if !wanted {
		return nil, nil
	}
	list = p.again(t)
	for i := range list {
		if list[i].step.Work, err = work(list[i].step.Op); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fewest makes the shortest beginning of the list again that meets the limit, and returns its length.
func (p *Plan) fewest(t Target, most int64, list []Again, f *Fitted) (*Plan, int, error) {
	best, err := p.apply(t, list)
	if err != nil {
		return nil, 0, err
	}
	if f.Least = min(p.Arena, best.Arena); best.Arena > most {
		return nil, 0, &TooSmall{Most: most, Before: p.Arena, Least: f.Least}
	}
	n := sort.Search(len(list), func(n int) bool { // more of them need less memory, but for a few bytes
		q, failed := p.apply(t, list[:n])
		if err = errors.Join(err, failed); failed != nil || q.Arena > most {
			return false
		}
		best = q
		return true
	})
	return best, n, err
}
