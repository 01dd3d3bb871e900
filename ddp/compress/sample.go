package compress

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp"
)

// sample estimates sums of squares from some of the values of a bucket.
type sample struct {
	n          int
	norm, lost float64
}

func (s *sample) add(v, lost float32) {
	s.n++
	s.norm += float64(v) * float64(v)
	s.lost += float64(lost) * float64(lost)
}

// into adds the estimate for a bucket of elems values, which were multiplied by unit.
func (s *sample) into(c *ddp.Coded, elems, unit float64) {
	if s.n == 0 {
		return
	}
	by := elems / float64(s.n) / (unit * unit)
	c.Norm += s.norm * by
	c.Lost += s.lost * by
}

// oneIn is how many stretches of values there are for one that is measured.
const oneIn = 64

// each calls f for one in 64 of n indices, and for one at least. Different steps choose different ones.
func each(n int, step int64, f func(i int)) {
	if n == 0 {
		return
	}
	for i := int(uint64(step) % uint64(min(n, oneIn))); i < n; i += oneIn {
		f(i)
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func errNotHost(codec string) error {
	return fmt.Errorf("compress: %s encodes on the host, which cannot access the gradients of this device\nhint: set comm.compress = \"none\"", codec)
}
