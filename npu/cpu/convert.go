//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

var convertMaker = maker{choose: chooseConvert, build: buildConvert}

// chooseConvert keeps concrete layouts; a free output gets the layout of the input, and vice versa.
func chooseConvert(d *Device, op npu.Op) (npu.Op, error) {
	op = convertLayouts(op)
	_, _, err := d.convertMDs(op)
	return op, err
}

func convertLayouts(op npu.Op) npu.Op {
	from, to := &op.In[0], &op.Out[0]
	if from.Layout == npu.Any {
		from.Layout = npu.Plain
		if to.Layout != npu.Any && !isToken(to.Layout) {
			from.Layout = to.Layout
		}
	}
	if to.Layout == npu.Any {
		to.Layout = from.Layout
	}
	return op
}

// convertMDs describes both sides with the same number of dimensions: grouped weights have five.
func (d *Device) convertMDs(op npu.Op) (from, to *dnnl.MD, err error) {
	a, b := op.In[0], op.Out[0]
	if a.Shape.Elems() == 0 {
		return nil, nil, errNotMine
	}
	if d.alike(a, b) { // element by element: one long row is the fastest shape
		flat := npu.Shape{int(a.Shape.Elems())}
		a, b = npu.Desc{Shape: flat, DType: a.DType}, npu.Desc{Shape: flat, DType: b.DType}
		if kern.Block(op.In[0].Layout) > 0 {
			na, err := d.Bytes(op.In[0])
			if err != nil {
				return nil, nil, err
			}
			a.Shape = npu.Shape{int(na) / a.DType.Size()}
			b.Shape = a.Shape
		}
	}
	if from, err = d.md(a); err != nil {
		return nil, nil, err
	}
	if to, err = d.md(b); err != nil {
		return nil, nil, err
	}
	return d.sameRank(a, from, b, to)
}

// alike reports whether element i of a is element i of b.
func (d *Device) alike(a, b npu.Desc) bool {
	if a.Layout != b.Layout || !isToken(a.Layout) {
		return a.Layout == b.Layout
	}
	n, err := d.Bytes(a)
	return err == nil && n == a.PlainBytes() // without padding
}

// pack is our own kernel for weights, two to five times as fast as the library's reorder, with the same bits; nil where there is none.
func pack(from, to *dnnl.MD) (*kern.Call, error) {
	a, err := from.Info()
	if err != nil {
		return nil, err
	}
	b, err := to.Info()
	if err != nil || a.DType != dnnl.F32 || b.DType != dnnl.BF16 || !a.Blocked || !b.Blocked || !slices.Equal(a.Dims, a.Padded) {
		return nil, err
	}
	order := func(i dnnl.Info) kern.Order {
		return kern.Order{Dims: i.Dims, Padded: i.Padded, Strides: i.Strides, Blocks: i.Blocks, Index: i.Index}
	}
	return kern.Pack(order(a), order(b)), nil
}

func (d *Device) sameRank(a npu.Desc, from *dnnl.MD, b npu.Desc, to *dnnl.MD) (*dnnl.MD, *dnnl.MD, error) {
	fi, err := from.Info()
	if err != nil {
		return nil, nil, err
	}
	ti, err := to.Info()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case len(fi.Dims) == len(ti.Dims):
	case a.Layout == npu.Plain:
		from, err = d.lib.Strided(fi.DType, ti.Dims, nil)
	case b.Layout == npu.Plain:
		to, err = d.lib.Strided(ti.DType, fi.Dims, nil)
	default:
		err = errNotMine
	}
	return from, to, err
}

func buildConvert(d *Device, op npu.Op) (body, error) {
	from, to, err := d.convertMDs(op)
	if err != nil {
		return nil, err
	}
	if call, err := pack(from, to); call != nil || err != nil {
		return kernBody{call}, err
	}
	pd, err := d.lib.Reorder(from, to, d.threads)
	if err != nil {
		return nil, notMine(err)
	}
	return newPrim(pd, primArg{dnnl.ArgSrc, from}, primArg{dnnl.ArgDst, to})
}
