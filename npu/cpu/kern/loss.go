//go:build cgo && linux && (amd64 || arm64)

package kern

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	register(npu.OneHot, prepareOneHot)
	for kind, kernel := range map[string]string{npu.BCE: "bce", npu.MSE: "mse"} {
		register(kind, func(op npu.Op) *Call { return paired(kernel, op) })
	}
	for kind, kernel := range map[string]string{npu.BCEBwd: "bce_bwd", npu.MSEBwd: "mse_bwd"} {
		register(kind, func(op npu.Op) *Call { return paired(kernel, op) })
	}
}

func prepareOneHot(op npu.Op) *Call {
	a := op.Attrs
	if op.In[0].Layout != npu.Plain || !plainF32(op.Out...) {
		return nil
	}
	c := &Call{
		kernel: "one_hot", n: []int64{int64(op.In[0].Shape[0]), int64(a.Int("classes", 0)), int64(a.Int("ignore_index", -100))},
		f: []float64{a.Float("on", 1), a.Float("off", 0)},
	}
	if w := a.Floats("weights"); w != nil {
		c.table = numbers(w)
	}
	return c
}

// numbers is a table of float32s.
func numbers(v []float64) *table {
	return sharedTable(fmt.Sprint("numbers ", v), len(v), func(t []float32) {
		for i, x := range v {
			t[i] = float32(x)
		}
	})
}

// paired is the Call of a loss of single elements: x, target, the weights of rows or none, then the results (loss and count) or dloss and the gradient.
// Sizes: rows, and elements of a row. Constant 0 is the weight of positive targets, or a table has one for each element of a row.
func paired(kernel string, op npu.Op) *Call {
	x := op.In[0]
	dt, ok := act(x.DType)
	back := len(op.Out) == 1 && op.Out[0].Shape.Equal(x.Shape) && len(op.In) > 2 && len(op.In[len(op.In)-1].Shape) == 0
	if !ok || x.Layout != npu.Plain || !plainF32(op.In[1:]...) || x.Shape.Elems() == 0 || back && !alike(x, op.Out[0]) || !back && !plainF32(op.Out...) {
		return nil
	}
	n := int64(x.Shape[0])
	c := &Call{kernel: kernel, dt: dt, n: []int64{n, x.Shape.Elems() / n}, f: []float64{1}, slots: []int{0, 1}, workspace: 8 * n}
	switch p := op.Attrs.Floats("pos_weight"); {
	case len(p) == 1:
		c.f[0] = p[0]
	case len(p) > 1 && len(x.Shape) != 2:
		return nil
	case len(p) > 1:
		c.table = numbers(p)
	}
	if op.Attrs.Bool("weighted") {
		c.slots = append(c.slots, 2)
	}
	c.slots = append(c.slots, 3, 4)[:len(op.In)+len(op.Out)]
	return c
}
