//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

var convMaker = maker{choose: chooseConv, build: buildConv}

// conv is a convolution op of any of the three kinds in terms of the forward pass. In a backward kind x, w or y describes the gradient.
type conv struct {
	kind       string
	x, w, y    npu.Desc
	groups     int
	win        dnnl.Window
	bias, relu bool
	threads    int
}

// parseConv reads an op that has passed ref.Check.
func (d *Device) parseConv(op npu.Op) conv {
	c := conv{kind: op.Kind, bias: op.Attrs.Bool("bias"), groups: op.Attrs.Int("groups", 1), threads: d.threads}
	switch op.Kind {
	case npu.Conv2D:
		c.x, c.w, c.y, c.relu = op.In[0], op.In[1], op.Out[0], op.Attrs.Bool("relu")
	case npu.Conv2DBwdData:
		c.y, c.w, c.x, c.bias = op.In[0], op.In[1], op.Out[0], false
	case npu.Conv2DBwdWeights:
		c.x, c.y, c.w = op.In[0], op.In[1], op.Out[0]
		c.bias = c.bias && len(op.Out) > 1
	}
	c.win = window(op.Attrs, c.w.Shape[2], c.w.Shape[3])
	return c
}

// window reads the geometry, with the defaults of package ref.
func window(a npu.Attrs, kh, kw int) dnnl.Window {
	w := dnnl.Window{Kernel: [2]int{kh, kw}, Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}}
	copy(w.Stride[:], a.Ints("stride"))
	copy(w.Dilation[:], a.Ints("dilation"))
	copy(w.Pad[:], a.Ints("pad"))
	return w
}

// weightDims is the shape of the weights in the library's terms.
func (c conv) weightDims() []int64 {
	s := dims(c.w.Shape)
	if c.groups == 1 {
		return s
	}
	return append([]int64{int64(c.groups), s[0] / int64(c.groups)}, s[1:]...)
}

// weightMD describes the weights in a layout.
func (d *Device) weightMD(c conv, l npu.Layout) (*dnnl.MD, error) {
	t, ok := dnnlTypes[c.w.DType]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: weights of %s", errNotMine, c.w.DType)
	case l == npu.Any:
		return d.lib.Any(t, c.weightDims())
	case l == npu.Plain:
		return d.lib.Strided(t, c.weightDims(), nil)
	}
	m, err := d.tokenMD(c.w.With(l))
	if err != nil {
		return nil, err
	}
	if in, err := m.Info(); err != nil || !slices.Equal(in.Dims, c.weightDims()) {
		return nil, fmt.Errorf("%w: weights %s have a different number of groups", errNotMine, c.w.With(l))
	}
	return m, nil
}

// convPD requests the convolution with these layouts from the library.
func (d *Device) convPD(c conv, lx, lw, ly npu.Layout) (*dnnl.PD, error) {
	x, err := d.md(c.x.With(lx))
	if err != nil {
		return nil, err
	}
	y, err := d.md(c.y.With(ly))
	if err != nil {
		return nil, err
	}
	w, err := d.weightMD(c, lw)
	if err != nil {
		return nil, err
	}
	spec := dnnl.Conv{X: x, W: w, Y: y, Window: c.win, Relu: c.relu, Threads: d.threads}
	if c.bias {
		if spec.Bias, err = d.lib.Strided(dnnl.F32, []int64{int64(c.w.Shape[0])}, nil); err != nil {
			return nil, err
		}
	}
	if c.kind == npu.Conv2D {
		return d.lib.ConvForward(spec)
	}
	hint := spec
	hint.Relu, hint.Bias = false, nil
	if hint.W, err = d.lib.Any(dnnlTypes[c.y.DType], c.weightDims()); err != nil {
		return nil, err
	}
	fwd, err := d.lib.ConvForward(hint)
	if err != nil {
		return nil, err
	}
	if c.kind == npu.Conv2DBwdData {
		return d.lib.ConvBackwardData(spec, fwd)
	}
	return d.lib.ConvBackwardWeights(spec, fwd)
}

// chooseConv picks the first pair of activation layouts for which the library has generated code, then the layout that the library prefers for the weights.
func chooseConv(d *Device, op npu.Op) (npu.Op, error) {
	c := d.parseConv(op)
	var best *dnnl.PD
	var lx, ly npu.Layout
	score := -1
	for _, pair := range d.convLayouts(c) {
		pd, err := d.convPD(c, pair[0], npu.Any, pair[1])
		if err != nil {
			continue
		}
		if r := rank(pd); r > score {
			best, score, lx, ly = pd, r, pair[0], pair[1]
		}
		if score == 2 {
			break
		}
	}
	if best == nil {
		return op, fmt.Errorf("%w: the library does not support this convolution", errNotMine)
	}
	lw, err := d.convWeights(c, best, lx, ly)
	if err != nil {
		return op, notMine(err)
	}
	setLayouts(op, lx, lw, ly)
	return op, nil
}

// setLayouts gives a convolution of any of the three kinds its layouts of images, weights and results. Everything else, such as the bias, is plain.
func setLayouts(op npu.Op, lx, lw, ly npu.Layout) {
	switch op.Kind {
	case npu.Conv2D:
		op.In[0].Layout, op.In[1].Layout, op.Out[0].Layout = lx, lw, ly
	case npu.Conv2DBwdData:
		op.In[0].Layout, op.In[1].Layout, op.Out[0].Layout = ly, lw, lx
	case npu.Conv2DBwdWeights:
		op.In[0].Layout, op.In[1].Layout, op.Out[0].Layout = lx, ly, lw
	}
	for i := range op.In[2:] {
		op.In[2+i].Layout = npu.Plain
	}
	for i := range op.Out[1:] {
		op.Out[1+i].Layout = npu.Plain
	}
}

// convWeights is the layout of the weights: the given one if the implementation stays the same with it, otherwise the library's choice.
func (d *Device) convWeights(c conv, pd *dnnl.PD, lx, ly npu.Layout) (npu.Layout, error) {
	if c.w.Layout != npu.Any {
		if given, err := d.convPD(c, lx, c.w.Layout, ly); err == nil && given.Impl() == pd.Impl() {
			return c.w.Layout, nil
		}
	}
	what := dnnl.WeightsMD
	if c.kind == npu.Conv2DBwdWeights {
		what = dnnl.DiffWeightsMD
	}
	m := pd.MD(what, 0)
	if m == nil {
		return "", fmt.Errorf("%w: %s does not report the layout of its weights", dnnl.ErrUnsupported, pd.Impl())
	}
	return d.weightLayout(c.w, m, c.groups)
}

func buildConv(d *Device, op npu.Op) (body, error) {
	c := d.parseConv(op)
	pd, err := d.convPD(c, c.x.Layout, c.w.Layout, c.y.Layout)
	if err != nil {
		return nil, notMine(err)
	}
	var args []primArg
	add := func(id int, what dnnl.What, index int) { args = append(args, primArg{id, pd.MD(what, index)}) }
	switch op.Kind {
	case npu.Conv2D:
		add(dnnl.ArgSrc, dnnl.SrcMD, 0)
		add(dnnl.ArgWeights, dnnl.WeightsMD, 0)
		if c.bias {
			add(dnnl.ArgBias, dnnl.WeightsMD, 1)
		}
		add(dnnl.ArgDst, dnnl.DstMD, 0)
	case npu.Conv2DBwdData:
		add(dnnl.ArgDiffDst, dnnl.DiffDstMD, 0)
		add(dnnl.ArgWeights, dnnl.WeightsMD, 0)
		add(dnnl.ArgDiffSrc, dnnl.DiffSrcMD, 0)
	case npu.Conv2DBwdWeights:
		add(dnnl.ArgSrc, dnnl.SrcMD, 0)
		add(dnnl.ArgDiffDst, dnnl.DiffDstMD, 0)
		add(dnnl.ArgDiffWeights, dnnl.DiffWeightsMD, 0)
		if c.bias {
			add(dnnl.ArgDiffBias, dnnl.DiffWeightsMD, 1)
		}
	}
	return newPrim(pd, args...)
}
