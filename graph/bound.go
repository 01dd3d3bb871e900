package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// ErrNil is a node that is not there.
var ErrNil = errors.New("nil node")

const nilHint = "check the names of inputs, and the errors of raw Gorgonia ops (wrap them in Builder.Raw)"

// Bound says what an input of whole numbers may hold, because the graph indexes with it: 0 … Below-1. Kernels of some devices do not look (see
// npu.Info.Unchecked), so whoever sets the input checks it, with Outside.
type Bound struct {
	Input    string
	Below    int
	Ignores  bool // Ignore is allowed too: a label that does not count
	Ignore   int
	Negative bool   // every negative number is allowed too
	Only     []bool // the elements that are indices; nil: all of them
}

// Bounds lists the bounds of inputs that calls use as indices: labels, ids, positions. It follows an index through what only moves elements (reshape,
// slice, transpose, concat, broadcast_to, a conversion to another integer type).
func (b *Builder) Bounds() []Bound {
	bounds, _ := b.findBounds()
	return bounds
}

// Unbounded lists the calls with indices that the graph computes, so that nobody can check them before it runs.
func (b *Builder) Unbounded() []string {
	_, calls := b.findBounds()
	return calls
}

func (b *Builder) findBounds() (bounds []Bound, unbounded []string) {
	for _, c := range b.indexed {
		for _, x := range c.kind.Indexes(c.attrs, c.in) {
			known := b.trace(c.kids[x.Input], nil, func(l *leaf, used []bool) {
				n := Bound{l.name, x.Below, x.Ignores, x.Ignore, x.Negative, used}
				if !slices.ContainsFunc(bounds, n.equal) {
					bounds = append(bounds, n)
				}
			})
			if !known {
				unbounded = append(unbounded, fmt.Sprintf("%s %q", c.kind.Name, c.path))
			}
		}
	}
	return bounds, unbounded
}

func (b *Bound) equal(o Bound) bool {
	return b.Input == o.Input && b.Below == o.Below && b.Ignores == o.Ignores && b.Ignore == o.Ignore && b.Negative == o.Negative &&
		(b.Only == nil) == (o.Only == nil) && slices.Equal(b.Only, o.Only)
}

// Outside looks for a value that is out of bounds in the memory of an input of integers. It returns the place of the first one; ok is false if there is
// none.
func (b *Bound) Outside(t npu.DType, mem []byte) (at int, value int64, ok bool) {
	if t == npu.I32 && uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%4 == 0 { // the usual case, for every batch: first one pass without branches
		below, highest := uint32(b.Below), uint32(0)
		values := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
		for _, v := range values {
			highest = max(highest, v)
		}
		if highest < below {
			return 0, 0, false
		}
	}
	for i := range len(mem) / t.Size() {
		var v int64
		switch t {
		case npu.I32:
			v = int64(int32(binary.NativeEndian.Uint32(mem[4*i:])))
		case npu.I64:
			v = int64(binary.NativeEndian.Uint64(mem[8*i:]))
		case npu.I8:
			v = int64(int8(mem[i]))
		default:
			v = int64(mem[i])
		}
		if (v < 0 || v >= int64(b.Below)) && !b.exempt(i, v) {
			return i, v, true
		}
	}
	return 0, 0, false
}

// exempt says whether a value outside the range is allowed all the same.
func (b *Bound) exempt(at int, v int64) bool {
	return b.Ignores && v == int64(b.Ignore) || b.Negative && v < 0 || b.Only != nil && !b.Only[at]
}

// trace follows a tensor of whole numbers back to the inputs that its used elements come from (nil: all of them). It returns false where elements are
// computed.
func (b *Builder) trace(n *Node, used []bool, found func(l *leaf, used []bool)) bool {
	if l := b.leaves[n]; l != nil {
		if l.kind == leafInput {
			found(l, used)
		}
		return l.kind == leafInput || l.kind == leafConst
	}
	c, ok := n.Op().(*call)
	if !ok {
		return false
	}
	switch c.kind.Name {
	case npu.Reshape:
		return b.trace(c.kids[0], used, found)
	case npu.Convert:
		return !c.in[0].DType.IsFloat() && b.trace(c.kids[0], used, found)
	case npu.Slice, npu.Transpose, npu.BroadcastTo, npu.Concat:
		known := true
		offset := 0
		for i, kid := range c.kids {
			known = b.trace(kid, moved(c.kind.Name, c.attrs, c.in[i].Shape, c.out[0].Shape, offset, used), found) && known
			if axis := c.attrs.Int("axis", 0); c.kind.Name == npu.Concat {
				offset += c.in[i].Shape[axis]
			}
		}
		return known
	}
	return false
}

// moved says which elements of an input of a moving call are among the used elements of its output. offset is where an input of concat begins.
func moved(kind string, a npu.Attrs, in, out npu.Shape, offset int, used []bool) []bool {
	if used == nil && kind != npu.Slice {
		return nil
	}
	begin, perm, axis := a.Ints("begin"), a.Ints("perm"), a.Int("axis", 0)
	mask := make([]bool, in.Elems())
	at := make([]int, len(out)) // a place in the output
	for o := range int(out.Elems()) {
		for d, rest := len(out)-1, o; d >= 0; d-- {
			at[d], rest = rest%out[d], rest/out[d]
		}
		if used != nil && !used[o] {
			continue
		}
		i, inside := 0, true
		for d := range in {
			p := 0
			switch kind {
			case npu.Slice:
				p = at[d] + begin[d]
			case npu.Transpose:
				p = at[slices.Index(perm, d)]
			case npu.BroadcastTo:
				if p = at[d+len(out)-len(in)]; in[d] == 1 {
					p = 0
				}
			case npu.Concat:
				if p = at[d]; d == axis {
					p -= offset
				}
			}
			inside = inside && p >= 0 && p < in[d]
			i = i*in[d] + p
		}
		if inside {
			mask[i] = true
		}
	}
	return mask
}
