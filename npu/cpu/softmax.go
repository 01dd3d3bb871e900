//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

var softmaxMaker = maker{choose: chooseSoftmax, build: buildSoftmax}

// rows describes a tensor as rows along its last axis.
func (d *Device) rows(t npu.Desc) (*dnnl.MD, error) {
	dt, ok := dnnlTypes[t.DType]
	if !ok || len(t.Shape) == 0 || t.Shape.Elems() == 0 {
		return nil, errNotMine
	}
	c := int64(t.Shape[len(t.Shape)-1])
	return d.lib.Strided(dt, []int64{t.Shape.Elems() / c, c}, nil)
}

func (d *Device) softmaxPD(op npu.Op) (*dnnl.PD, []*dnnl.MD, error) {
	var mds []*dnnl.MD
	for i := range len(op.In) + len(op.Out) {
		t, _ := arg(op, i)
		m, err := d.rows(t)
		if err != nil {
			return nil, nil, err
		}
		mds = append(mds, m)
	}
	s := dnnl.Softmax{Axis: 1, Threads: d.threads, Log: op.Kind == npu.LogSoftmax || op.Kind == npu.LogSoftmaxBwd}
	if op.Kind == npu.Softmax || op.Kind == npu.LogSoftmax {
		s.X, s.Y = mds[0], mds[1]
		pd, err := d.lib.SoftmaxForward(s)
		return pd, mds, notMine(err)
	}
	s.X, s.Y = mds[1], mds[1]
	fwd, err := d.lib.SoftmaxForward(s)
	if err != nil {
		return nil, nil, notMine(err)
	}
	s.DY, s.X = mds[0], mds[2]
	pd, err := d.lib.SoftmaxBackward(s, fwd)
	return pd, mds, notMine(err)
}

func chooseSoftmax(d *Device, op npu.Op) (npu.Op, error) {
	if _, _, err := d.softmaxPD(op); err != nil {
		return op, err
	}
	return allPlain(op), nil
}

func buildSoftmax(d *Device, op npu.Op) (body, error) {
	if !isPlain(op) {
		return nil, errNotMine
	}
	pd, mds, err := d.softmaxPD(op)
	if err != nil {
		return nil, err
	}
	if len(mds) == 2 {
		return newPrim(pd, primArg{dnnl.ArgSrc, mds[0]}, primArg{dnnl.ArgDst, mds[1]})
	}
	return newPrim(pd, primArg{dnnl.ArgDiffDst, mds[0]}, primArg{dnnl.ArgDst, mds[1]}, primArg{dnnl.ArgDiffSrc, mds[2]})
}
