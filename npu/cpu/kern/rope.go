//go:build cgo && linux && (amd64 || arm64)

package kern

// #include "flags.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// maxHead is the maximum head width, limited by rope's buffer on the stack.
const maxHead = 1024

func init() { register(npu.Rope, prepareRope) }

// prepareRope tabulates cosines and sines for as many positions as x is long: enough for a prompt, and for documents packed into a training row. Positions
// beyond the table, as in generation token by token, are few, and computed when needed.
func prepareRope(op npu.Op) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	if !ok || !allPlain(op) || !alike(x, op.Out[0]) {
		return nil
	}
	s, d := x.Shape[1], x.Shape[3]
	if d < 2 || d%2 != 0 || d > maxHead {
		return nil
	}
	pos := op.Attrs.Bool("pos")
	if pos && op.In[1].DType != npu.I32 {
		return nil
	}
	f := kind.RopeFrequencies(op.Attrs, d)
	adjacent := op.Attrs.Str("pairs") == "adjacent"
	known := s
	if pos && s == 1 {
		known = 0
	}
	c := &Call{
		kernel: "rope", dt: dt, flags: bit(adjacent, C.ROPE_ADJACENT) | bit(op.Attrs.Bool("inverse"), C.ROPE_INVERSE),
		n: []int64{int64(x.Shape[0]) * int64(s), int64(s), int64(x.Shape[2]), int64(d), int64(known)}, slots: []int{0, 2},
		table: sharedTable(fmt.Sprint("rope ", known, adjacent, f), known*ropeRow(d, adjacent), func(t []float32) { ropeTable(t, f, adjacent) }),
	}
	if pos {
		c.slots = []int{0, 1, 2}
	}
	for _, v := range f {
		c.v = append(c.v, int64(math.Float64bits(v)))
	}
	return c
}

// ropeRow is the number of float32s per position: cosines, then sines, one of each per pair, or per element if pairs are adjacent.
func ropeRow(d int, adjacent bool) int {
	if adjacent {
		return 2 * d
	}
	return d
}

// ropeTable sets the rows of positions 0, 1, … In the adjacent form the sine of the first element of a pair is negative.
func ropeTable(t []float32, f []float64, adjacent bool) {
	row := ropeRow(2*len(f), adjacent)
	for p := range len(t) / row {
		cos, sin := t[p*row:p*row+row/2], t[p*row+row/2:(p+1)*row]
		for i, v := range f {
			s, c := math.Sincos(float64(p) * v)
			if adjacent {
				cos[2*i], cos[2*i+1] = float32(c), float32(c)
				sin[2*i], sin[2*i+1] = float32(-s), float32(s)
			} else {
				cos[i], sin[i] = float32(c), float32(s)
			}
		}
	}
}
