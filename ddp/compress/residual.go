package compress

import (
	"fmt"
	"math"
)

// place is where the values of parameter i lie: a bucket, and elements of it.
func (c *int8s) place(i int) (b *int8Bucket, at, n int) {
	k, pl := c.plan.Of(i)
	return &c.bkts[k], int(pl.Offset / 4), int(pl.Bytes / 4)
}

// Residual copies the residual of a parameter.
func (c *int8s) Residual(i int, dst []float32) bool {
	if c.o.NoFeedback || c.ranks == 1 || c.o.Raw != nil && c.o.Raw(c.plan.Params[i].Name) {
		return false
	}
	if dst == nil {
		return true
	}
	b, at, n := c.place(i)
	r := &b.lost
	for j := range dst[:n] {
		dst[j] = float32(r.value[c.now][at+j]) * r.scale[c.now][(at+j)/b.l.block]
	}
	return true
}

// Restore sets the residual of a parameter. Parameters may share a block: its scale then grows to what all of them need.
func (c *int8s) Restore(i int, src []float32) error {
	b, at, n := c.place(i)
	r := &b.lost
	if len(src) != n {
		return fmt.Errorf("compress: residual of %s has %d values, want %d", c.plan.Params[i].Name, len(src), n)
	}
	if r.value[0] == nil {
		return nil
	}
	value, scale := r.value[c.now], r.scale[c.now]
	for from := at; from < at+n; {
		block := from / b.l.block
		to := min((block+1)*b.l.block, at+n)
		if b.l.raw[block] { // travels exactly, so nothing is owed that later steps would add
			from = to
			continue
		}
		most := float32(0)
		for _, v := range src[from-at : to-at] {
			if v != v || math.IsInf(float64(v), 0) {
				return fmt.Errorf("compress: the residual of %s is not finite", c.plan.Params[i].Name)
			}
			most = max(most, float32(math.Abs(float64(v))))
		}
		s := unitFor(most)
		if s > scale[block] {
			coarser(value, scale[block]/s, block*b.l.block, min((block+1)*b.l.block, b.l.elems))
			scale[block] = s
		}
		for j := from; j < to; j++ {
			value[j] = 0
			if scale[block] > 0 {
				value[j] = short(float64(src[j-at] / scale[block]))
			}
		}
		from = to
	}
	return nil
}

// unitFor is the power of two in whose units a value up to most fits into 16 bits. What was stored with a scale like that fits exactly.
func unitFor(most float32) float32 {
	if most == 0 {
		return 0
	}
	_, exp := math.Frexp(float64(most)) // most < 2^exp
	return float32(math.Exp2(float64(max(exp-15, -122))))
}

// coarser multiplies values whose unit grows.
func coarser(value []int16, by float32, from, to int) {
	for j := from; j < to; j++ {
		value[j] = short(float64(float32(value[j]) * by))
	}
}

func short(v float64) int16 {
	return int16(min(max(math.RoundToEven(v), math.MinInt16), math.MaxInt16))
}
