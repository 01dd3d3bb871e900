//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// linearCEOps are the three kinds on n rows of dim and v classes.
func linearCEOps(t npu.DType, n, v, dim int) []npu.Op {
	x, w, labels, one, rows, dw := npu.D(t, n, dim), npu.D(t, v, dim), npu.D(npu.I32, n), npu.D(npu.F32), npu.D(npu.F32, n), npu.D(npu.F32, v, dim)
	a := npu.Attrs{"ignore_index": -1}
	return []npu.Op{
		{Kind: npu.LinearCrossEntropy, Attrs: a, In: []npu.Desc{x, w, labels}, Out: []npu.Desc{one, one, rows}},
		{Kind: npu.LinearCrossEntropyBwd, Attrs: a, In: []npu.Desc{x, w, labels, rows, one}, Out: []npu.Desc{x, dw}},
		{Kind: npu.LinearCrossEntropyGrad, Attrs: a, In: []npu.Desc{x, w, labels, one}, Out: []npu.Desc{one, one, rows, x, dw}},
	}
}

// smallTiles makes tiles so small that little tensors have several.
func smallTiles(t *testing.T, rows, cols int) {
	r, c := ceRows, ceCols
	ceRows, ceCols = rows, cols
	t.Cleanup(func() { ceRows, ceCols = r, c })
}

// linearCEInputs are x, w, labels with ignored rows, and dloss; logits reach ±12, so that some rows are sure of their label.
func linearCEInputs(op npu.Op, r *rand.Rand) [][]byte {
	n, v, dim := op.In[0].Shape[0], op.In[1].Shape[0], op.In[0].Shape[1]
	size := math.Sqrt(3 / math.Sqrt(float64(dim)))
	scaled := func(int) float64 { return size * r.NormFloat64() }
	in := [][]byte{tensor(op.In[0], scaled), tensor(op.In[1], scaled), tensor(op.In[2], func(i int) float64 {
		if i%5 == 3 {
			return -1
		}
		return float64(r.IntN(v))
	}), nil}
	in[3] = tensor(npu.D(npu.F32), constant(0.375))
	for i := range n { // rows of x that point to their label
		if l := int(get(in[2], i, npu.I32)); l >= 0 && i%3 == 0 {
			for k := range dim {
				put(in[0], i*dim+k, op.In[0].DType, 4/math.Sqrt(float64(dim))*get(in[1], l*dim+k, op.In[1].DType))
			}
		}
	}
	return in
}

func TestLinearCrossEntropy(t *testing.T) {
	smallTiles(t, 32, 48)
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		r := rand.New(rand.NewPCG(8, 8))
		for _, s := range [][3]int{{1, 1, 1}, {32, 48, 16}, {33, 100, 8}, {70, 311, 24}, {5, 49, 63}, {100, 64, 33}} {
			for _, dt := range floatTypes {
				ops := linearCEOps(dt, s[0], s[1], s[2])
				in := linearCEInputs(ops[0], r)
				exp := want(t, ops[2], in)
				// Exponentials and gradients by logits are rounded to 2^-9 in bf16, both factors of dw, and dx itself.
				tol := 2e-5
				if dt == npu.BF16 {
					tol = 1.0 / 100
				}
				check := func(k npu.Kernel, op npu.Op, got, exp [][]byte) {
					if !strings.HasPrefix(k.Impl(), "dnnl:") {
						t.Errorf("executed by %s", k.Impl())
					}
					for j, o := range op.Out {
						compare(t, fmt.Sprintf("%s by %s, output %d", op, k.Impl(), j), o, got[j], exp[j], tol, 1)
					}
				}
				k, got := g.run(ops[0], in[:3], nil)
				check(k, ops[0], got, exp[:3])
				k, got = g.run(ops[1], [][]byte{in[0], in[1], in[2], exp[2], in[3]}, nil)
				check(k, ops[1], got, exp[3:])
				k, got = g.run(ops[2], in, nil)
				check(k, ops[2], got, exp)
				_, again := g.run(ops[2], in, nil)
				for j := range got {
					if string(got[j]) != string(again[j]) {
						t.Errorf("%s: output %d differs from run to run", ops[2], j)
					}
				}
				if t.Failed() {
					return
				}
			}
		}
	})
}

// A bad label is told before anything is written.
func TestLinearCrossEntropyLabels(t *testing.T) {
	for _, lib := range libraries(t) {
		g := newRig(t, open(t, npu.Options{Threads: 1, Extra: map[string]string{"onednn": lib}}))
		for _, op := range linearCEOps(npu.F32, 6, 10, 4) {
			op = must(g.d.Choose(op))(t)
			var args []npu.Ptr
			for i := range len(op.In) + len(op.Out) {
				a, _ := arg(op, i)
				args = append(args, g.upload(a, tensor(a, constant(1, 3))))
			}
			g.sync()
			labels := args[2].Buf.Host()
			put(labels, 4, npu.I32, 10)
			g.launch(op, args)
			err := g.s.Sync(context.Background())
			if err == nil || !strings.Contains(err.Error(), "row 4: label 10 outside 0…9\nhint: ") {
				t.Errorf("%s: label 10 of 10 classes: %v", op.Kind, err)
			}
			for i := range op.Out {
				if v := get(args[len(op.In)+i].Buf.Host(), 0, op.Out[i].DType); v != 1 {
					t.Errorf("%s: output %d was written: %g", op.Kind, i, v)
				}
			}
		}
	}
}

// Count and lse may be left out.
func TestLinearCrossEntropyNil(t *testing.T) {
	g := newRig(t, open(t, npu.Options{Threads: 1, Extra: map[string]string{"onednn": libraries(t)[0]}}))
	op := must(g.d.Choose(linearCEOps(npu.F32, 6, 10, 4)[0]))(t)
	in := linearCEInputs(op, rand.New(rand.NewPCG(3, 3)))
	args := []npu.Ptr{g.upload(op.In[0], in[0]), g.upload(op.In[1], in[1]), g.upload(op.In[2], in[2]), g.alloc(4), {}, {}}
	g.launch(op, args)
	g.sync()
	exp := want(t, op, in[:3])
	compare(t, "loss", op.Out[0], g.download(op.Out[0], args[3]), exp[0], 1e-5, 1)
}
