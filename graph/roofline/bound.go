package roofline

import (
	"github.com/gotrain/gotrain/npu"
)

// Bound says what a kernel waits for at best.
type Bound string

const (
	Compute Bound = "compute"
	Memory  Bound = "memory"
)

// seconds returns the time that the cost takes at least on the measured device, what bounds it, and the time that it takes if its tensors are in the largest
// cache as far as they fit. With fewer operations than the op has, ease is by how much.
func seconds(c Cost, l npu.Limits, ease float64) (bound float64, by Bound, least float64) {
	compute := 0.0
	if peak := l.Peak(arithmetic(c.Type, l)); peak > 0 {
		compute = float64(c.FLOP) / ease / peak
	}
	bound, by = compute, Compute
	n := c.Bytes()
	if len(l.Rates) == 0 || n == 0 {
		return bound, by, compute
	}
	memory := float64(n) / rate(l, n, c)
	if memory > compute {
		bound, by = memory, Memory
	}
	held := min(n, cache(l))
	least = float64(held)/rate(l, held, c) + float64(n-held)/rate(l, n, c)
	return bound, by, max(compute, min(memory, least))
}

// arithmetic is the type whose peak counts: float32 where the device has none for the type, or a lower one, as products may be float32 then.
func arithmetic(t npu.DType, l npu.Limits) npu.DType {
	if l.Peak(t) > l.Peak(npu.F32) {
		return t
	}
	return npu.F32
}

// rate is the fastest that any loop moves n bytes: where hardly anything is written, the loop that reads. Between two measured working sets it is that
// of the smaller one, and no larger set is faster than a smaller.
func rate(l npu.Limits, n int64, c Cost) float64 {
	mixed := 10*c.Writes > c.Bytes()
	best := 0.0
	for i := len(l.Rates) - 1; i >= 0; i-- {
		r := l.Rates[i]
		v := r.Read
		if mixed {
			v = max(v, r.Copy, r.Add)
		}
		best = max(best, v)
		if r.Bytes <= n {
			break
		}
	}
	return best
}

// cache is the largest working set that is clearly faster than memory.
func cache(l npu.Limits) int64 {
	last := l.Rates[len(l.Rates)-1]
	for i := len(l.Rates) - 1; i >= 0; i-- {
		if r := l.Rates[i]; r.Read > 1.2*last.Read || r.Add > 1.2*last.Add {
			return r.Bytes
		}
	}
	return 0
}
