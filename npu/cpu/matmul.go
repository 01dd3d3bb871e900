//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

var matmulMaker = maker{choose: chooseMatMul, build: buildMatMul}

// matrix describes the last two dimensions of t as rows x cols, leading ones as one batch; strides express transposed memory.
func (d *Device) matrix(t npu.Desc, transposed bool) (*dnnl.MD, error) {
	dt, ok := dnnlTypes[t.DType]
	n := len(t.Shape)
	if !ok || n < 2 || t.Shape.Elems() == 0 {
		return nil, fmt.Errorf("%w: matrix %s", errNotMine, t)
	}
	r, c := int64(t.Shape[n-2]), int64(t.Shape[n-1])
	dm, st := []int64{r, c}, []int64{c, 1}
	if transposed {
		dm, st = []int64{c, r}, []int64{1, c}
	}
	if batch := npu.Shape(t.Shape[:n-2]).Elems(); n > 2 {
		dm, st = append([]int64{batch}, dm...), append([]int64{r * c}, st...)
	}
	return d.lib.Strided(dt, dm, st)
}

func (d *Device) matmulPD(op npu.Op) (*dnnl.PD, []*dnnl.MD, error) {
	a, err := d.matrix(op.In[0], op.Attrs.Bool("ta"))
	if err != nil {
		return nil, nil, err
	}
	b, err := d.matrix(op.In[1], op.Attrs.Bool("tb"))
	if err != nil {
		return nil, nil, err
	}
	y, err := d.matrix(op.Out[0], false)
	if err != nil {
		return nil, nil, err
	}
	mds := []*dnnl.MD{a, b}
	var bias *dnnl.MD
	if op.Attrs.Bool("bias") {
		bd := []int64{1, int64(op.In[2].Shape[0])}
		if len(op.Out[0].Shape) > 2 {
			bd = append([]int64{1}, bd...)
		}
		dt, ok := dnnlTypes[op.In[2].DType]
		if !ok {
			return nil, nil, fmt.Errorf("%w: bias %s", errNotMine, op.In[2])
		}
		if bias, err = d.lib.Strided(dt, bd, nil); err != nil {
			return nil, nil, err
		}
		mds = append(mds, bias)
	}
	pd, err := d.lib.MatMul(a, b, bias, y, d.threads)
	if err != nil {
		return nil, nil, notMine(err)
	}
	return pd, append(mds, y), nil
}

func chooseMatMul(d *Device, op npu.Op) (npu.Op, error) {
	if _, _, err := d.matmulPD(op); err != nil {
		return op, err
	}
	return allPlain(op), nil
}

func buildMatMul(d *Device, op npu.Op) (body, error) {
	if !isPlain(op) {
		return nil, errNotMine
	}
	pd, mds, err := d.matmulPD(op)
	if err != nil {
		return nil, err
	}
	ids := []int{dnnl.ArgSrc, dnnl.ArgWeights, dnnl.ArgBias, dnnl.ArgDst}
	if len(mds) == 3 {
		ids = []int{dnnl.ArgSrc, dnnl.ArgWeights, dnnl.ArgDst}
	}
	var args []primArg
	for i, m := range mds {
		args = append(args, primArg{ids[i], m})
	}
	return newPrim(pd, args...)
}

// allPlain sets the plain layout for every argument.
func allPlain(op npu.Op) npu.Op {
	for i := range op.In {
		op.In[i].Layout = npu.Plain
	}
	for i := range op.Out {
		op.Out[i].Layout = npu.Plain
	}
	return op
}

func isPlain(op npu.Op) bool {
	for i := range len(op.In) + len(op.Out) {
		if t, _ := arg(op, i); t.Layout != npu.Plain {
			return false
		}
	}
	return true
}
