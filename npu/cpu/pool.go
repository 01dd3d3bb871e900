//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

var poolMaker = maker{choose: choosePool, build: buildPool}

func isPoolBwd(kind string) bool { return kind == npu.MaxPoolBwd || kind == npu.AvgPoolBwd }

// bigDescs returns x and y of a pooling op, or their gradients for a backward kind.
func bigDescs(op npu.Op) (x, y *npu.Desc) {
	if isPoolBwd(op.Kind) {
		return &op.Out[0], &op.In[0]
	}
	return &op.In[0], &op.Out[0]
}

// poolPD requests the primitive with x and y in layout l; index is the descriptor of maxpool's workspace.
func (d *Device) poolPD(op npu.Op, l npu.Layout) (pd *dnnl.PD, index *dnnl.MD, err error) {
	x, y := bigDescs(op)
	p := dnnl.Pool{Threads: d.threads, Alg: dnnl.PoolAvgExclude}
	k := op.Attrs.Ints("kernel")
	p.Window = window(op.Attrs, k[0], k[1])
	switch {
	case op.Kind == npu.MaxPool || op.Kind == npu.MaxPoolBwd:
		p.Alg = dnnl.PoolMax
		p.Inference = op.Kind == npu.MaxPool && len(op.Out) == 1
	case op.Attrs.Bool("include_pad"):
		p.Alg = dnnl.PoolAvgInclude
	}
	for i := range 2 {
		// A window entirely within the padding has no value in the library's average, and no index in its maximum.
		if reach := (p.Kernel[i]-1)*p.Dilation[i] + 1; p.Pad[i] >= reach || p.Pad[2+i] >= reach || p.Kernel[i]*p.Dilation[i] > 1<<15 {
			return nil, nil, errNotMine
		}
	}
	if p.X, err = d.md(x.With(l)); err != nil {
		return nil, nil, err
	}
	if p.Y, err = d.md(y.With(l)); err != nil {
		return nil, nil, err
	}
	fwd, err := d.lib.PoolForward(p)
	if err != nil {
		return nil, nil, notMine(err)
	}
	pd = fwd
	if p.Alg == dnnl.PoolMax && !p.Inference {
		index = fwd.MD(dnnl.WorkspaceMD, 0)
	}
	if isPoolBwd(op.Kind) {
		if pd, err = d.lib.PoolBackward(p, fwd); err != nil {
			return nil, nil, notMine(err)
		}
	}
	return pd, index, nil
}

// indexLayout is the token of maxpool's workspace. It names the layout of the activations because the gradient must use the same.
func (d *Device) indexLayout(t npu.Desc, l npu.Layout, index *dnnl.MD) npu.Layout {
	name := string(l)
	if l == npu.Plain {
		name = "nchw"
	}
	in, _ := index.Info()
	token := npu.Layout(fmt.Sprintf("p:%s:%d%s", name, in.DType, index.Tag()))
	d.remember(token, t, index)
	return token
}

// poolLayouts lists the layouts of the activations to try: the one named by maxpool's index, otherwise the input's layout first if it is a fast one.
func (d *Device) poolLayouts(op npu.Op) []npu.Layout {
	x, _ := bigDescs(op)
	if op.Kind == npu.MaxPoolBwd && op.In[1].Layout != npu.Any {
		name, _, ok := strings.Cut(strings.TrimPrefix(string(op.In[1].Layout), "p:"), ":")
		switch {
		case !ok:
			return nil // plain indices are not from the library
		case name == "nchw":
			return []npu.Layout{npu.Plain}
		}
		return []npu.Layout{npu.Layout(name)}
	}
	var list []npu.Layout
	if l := op.In[0].Layout; l == NHWC || blocks(l, x.Shape[1]) {
		list = append(list, l)
	}
	if l := d.prefer(x.DType); blocks(l, x.Shape[1]) {
		list = append(list, l)
	}
	return append(list, NHWC, npu.Plain)
}

func choosePool(d *Device, op npu.Op) (npu.Op, error) {
	score := -1
	best := op
	for _, l := range d.poolLayouts(op) {
		pd, index, err := d.poolPD(op, l)
		if err != nil || rank(pd) <= score {
			continue
		}
		score = rank(pd)
		best = op.Clone()
		x, y := bigDescs(best)
		x.Layout, y.Layout = l, l
		switch {
		case op.Kind == npu.MaxPoolBwd:
			best.In[1].Layout = d.indexLayout(best.In[1], l, index)
		case index != nil:
			best.Out[1].Layout = d.indexLayout(best.Out[1], l, index)
		}
		if score == 2 {
			break
		}
	}
	if score < 0 {
		return op, errNotMine
	}
	return best, nil
}

func buildPool(d *Device, op npu.Op) (body, error) {
	x, y := bigDescs(op)
	if x.Layout != y.Layout || (op.Kind == npu.MaxPoolBwd && !isToken(op.In[1].Layout)) ||
		(op.Kind == npu.MaxPool && len(op.Out) > 1 && !isToken(op.Out[1].Layout)) {
		return nil, errNotMine
	}
	pd, index, err := d.poolPD(op, x.Layout)
	if err != nil {
		return nil, err
	}
	if isPoolBwd(op.Kind) {
		args := []primArg{{dnnl.ArgDiffDst, pd.MD(dnnl.DiffDstMD, 0)}}
		if op.Kind == npu.MaxPoolBwd {
			args = append(args, primArg{dnnl.ArgWorkspace, index})
		}
		return newPrim(pd, append(args, primArg{dnnl.ArgDiffSrc, pd.MD(dnnl.DiffSrcMD, 0)})...)
	}
	args := []primArg{{dnnl.ArgSrc, pd.MD(dnnl.SrcMD, 0)}, {dnnl.ArgDst, pd.MD(dnnl.DstMD, 0)}}
	if index == nil {
		return newPrim(pd, args...)
	}
	p, err := newPrim(pd, append(args, primArg{dnnl.ArgWorkspace, index})...)
	if err != nil {
		return nil, err
	}
	p.spill = index.Bytes()
	return p, nil
}
