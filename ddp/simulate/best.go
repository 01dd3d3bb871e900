package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
)

// Choice is a way to cut buckets.
type Choice struct {
	Config  bucket.Config
	Buckets int
	Result  Result
}

// caps are the sizes of buckets that Best tries for gradients of total bytes: three for each doubling, from 256 KiB, or less for a small model, to the
// whole, at most 1 GiB.
func caps(total int64) (out []int64) {
	least := float64(max(1<<10, min(256<<10, total/64)))
	for i := 0; ; i++ {
		size := int64(math.Round(least * math.Exp2(float64(i)/3)))
		if out = append(out, size); size >= min(total+total/8+1<<16, 1<<30) { // with room for alignment
			return out
		}
	}
}

// ends are the caps of the last bucket, and of the first, that Best tries beside the cap itself.
var ends = []int64{64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}

// Best cuts parameters into buckets so that a step with them has the least exposed communication. s has everything but the buckets. Among cuts within a
// thousandth of a step of the least, it takes the one with the fewest buckets: each has costs that no model knows.
func Best(params []bucket.Param, s Step, align int64) (Choice, error) {
	all, err := attempts(params, s, align)
	if err != nil {
		return Choice{}, err
	}
	least := slices.MinFunc(all, func(a, b Choice) int { return cmp.Compare(a.Result.Exposed, b.Result.Exposed) }).Result
	return slices.MinFunc(all, func(a, b Choice) int {
		far := func(c Choice) int {
			if c.Result.Exposed-least.Exposed > least.Time/1000 {
				return 1
			}
			return 0
		}
		return cmp.Or(far(a)-far(b), cmp.Compare(a.Buckets, b.Buckets), cmp.Compare(a.Result.Exposed, b.Result.Exposed))
	}), nil
}

// attempts simulates every cut that the caps give.
func attempts(params []bucket.Param, s Step, align int64) (all []Choice, err error) {
	total := int64(0)
	for _, p := range params {
		total += p.Elems * int64(p.DType.Size())
	}
	seen := map[string]bool{}
	for _, size := range caps(total) {
		for _, last := range append([]int64{size}, ends...) {
			for _, first := range append([]int64{size}, ends...) {
				if first > size || last > size {
					continue
				}
				cfg := bucket.Config{CapBytes: size, FirstBytes: first, LastBytes: last, World: s.Cluster.Ranks, AlignBytes: align}
				c, err := attempt(params, s, cfg, seen)
				if err != nil {
					return nil, err
				}
				if c != nil {
					all = append(all, *c)
				}
			}
		}
	}
	return all, nil
}

// attempt simulates one cut; nil: it was tried before.
func attempt(params []bucket.Param, s Step, cfg bucket.Config, seen map[string]bool) (*Choice, error) {
	p, err := bucket.New(params, cfg)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	key := ""
	for _, b := range p.Buckets {
		key += fmt.Sprintf("%d,", b.Ready)
	}
	if seen[key] {
		return nil, nil
	}
	seen[key] = true
	s.Buckets = p
	r, err := Run(s)
	return &Choice{Config: cfg, Buckets: len(p.Buckets), Result: r}, err
}

// Sentence says what a cut is expected to give.
func (c Choice) Sentence() string {
	if c.Buckets == 1 {
		return fmt.Sprintf("one bucket: %v of a step of %v exposed", Round(c.Result.Exposed), Round(c.Result.Time))
	}
	return fmt.Sprintf("%d buckets of at most %.3g MiB (first %.3g, last %.3g): %v of a step of %v exposed", c.Buckets, mib(c.Config.CapBytes),
		mib(c.Config.FirstBytes), mib(c.Config.LastBytes), Round(c.Result.Exposed), Round(c.Result.Time))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// Round drops the digits of a prediction that mean nothing.
func Round(d time.Duration) time.Duration {
	for unit := time.Duration(1); unit < time.Hour; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
	return d.Round(time.Minute)
}
