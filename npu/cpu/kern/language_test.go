//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// ints are n numbers lo…hi-1.
func ints(r *rand.Rand, n, lo, hi int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		put(b, i, npu.I32, float64(lo+r.IntN(hi-lo)))
	}
	return b
}

func TestEmbedding(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 1))
	const v = 37
	for _, dt := range acts {
		for _, s := range [][]int{{}, {7}, {2, 3}, {3, 100}} {
			for _, d := range []int{1, 5, 16, 48, 130} {
				ids, x := npu.D(npu.I32, s...), npu.D(dt, append(append([]int{}, s...), d)...)
				n := int(ids.Shape.Elems())
				fwd := npu.Op{Kind: npu.Embedding, In: []npu.Desc{ids, npu.D(dt, v, d)}, Out: []npu.Desc{x}}
				twin{op: fwd, in: [][]byte{ints(r, n, 0, v)}}.run(t, r)
				dw := npu.D(npu.F32, v, d)
				bwd := npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": v, "add": false}, In: []npu.Desc{x, ids}, Out: []npu.Desc{dw}}
				twin{op: bwd, in: [][]byte{nil, ints(r, n, 0, v)}}.run(t, r)
				add := npu.Op{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": v, "add": true}, In: []npu.Desc{x, ids, dw}, Out: []npu.Desc{dw}}
				twin{op: add, in: [][]byte{nil, ints(r, n, 3, 5)}}.run(t, r)
				twin{op: add, in: [][]byte{nil, ints(r, n, 3, 5)}, alias: map[int]int{0: 2}}.run(t, r)
			}
		}
	}
}

func TestIDOutOfRange(t *testing.T) {
	ids, w, y := npu.D(npu.I32, 2, 3), npu.D(npu.F32, 5, 4), npu.D(npu.F32, 2, 3, 4)
	for _, op := range []npu.Op{
		{Kind: npu.Embedding, In: []npu.Desc{ids, w}, Out: []npu.Desc{y}},
		{Kind: npu.EmbeddingBwd, Attrs: npu.Attrs{"rows": 5}, In: []npu.Desc{y, ids}, Out: []npu.Desc{w}},
	} {
		for _, bad := range []float64{-1, 5} {
			m := newMemory(t, 1<<16)
			defer m.free()
			var args []unsafe.Pointer
			for _, d := range append(append([]npu.Desc{}, op.In...), op.Out...) {
				b := m.take(d.PlainBytes())
				if args = append(args, ptr(b)); d.DType == npu.I32 {
					put(b, 4, npu.I32, bad)
				}
			}
			out := unsafe.Slice((*byte)(args[2]), op.Out[0].PlainBytes())
			for i := range out {
				out[i] = 7
			}
			call, _ := kern.Prepare(op)
			cmd, err := call.Bind(args, nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Run(1); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("ids[1 1]: id %v outside 0…4\nhint: ", bad)) {
				t.Errorf("%s: %v", op.Kind, err)
			}
			if bytes.Count(out, []byte{7}) != len(out) {
				t.Errorf("%s: wrote before it looked at the ids", op.Kind)
			}
		}
	}
}

func rmsNorm(x npu.Desc, add bool) npu.Op {
	n := len(x.Shape) - 1
	op := npu.Op{
		Kind:  npu.RMSNorm,
		Attrs: npu.Attrs{"eps": 1e-5, "add": add},
		In:    []npu.Desc{x, npu.D(npu.F32, x.Shape[n])},
		Out:   []npu.Desc{x, npu.D(npu.F32, x.Shape[:n]...)},
	}
	if add {
		op.In, op.Out = append(op.In, x), append(op.Out, x)
	}
	return op
}

func rmsNormBwd(x npu.Desc, add bool) npu.Op {
	n := len(x.Shape) - 1
	w, rows := npu.D(npu.F32, x.Shape[n]), npu.D(npu.F32, x.Shape[:n]...)
	op := npu.Op{Kind: npu.RMSNormBwd, Attrs: npu.Attrs{"eps": 1e-5, "add": add}, In: []npu.Desc{x, x, w, rows}, Out: []npu.Desc{x, w}}
	if add {
		op.In = append(op.In, x)
	}
	return op
}

var rmsShapes = [][]int{{1}, {3, 1}, {5, 7}, {2, 3, 64}, {70, 48}, {33, 100}, {4, 1030}}

func TestRMSNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 1))
	for _, dt := range acts {
		for _, s := range rmsShapes {
			x := npu.D(dt, s...)
			for _, alias := range []map[int]int{nil, {0: 0}} {
				twin{op: rmsNorm(x, false), alias: alias}.run(t, r)
			}
			for _, alias := range []map[int]int{nil, {0: 0}, {2: 0}, {2: 2}, {0: 2}, {0: 0, 2: 2}, {0: 2, 2: 0}} {
				twin{op: rmsNorm(x, true), alias: alias}.run(t, r)
			}
		}
	}
}

func TestRMSNormBwd(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	for _, dt := range acts {
		for _, s := range rmsShapes {
			x := npu.D(dt, s...)
			rstd := [][]byte{nil, nil, nil, positive(int(x.Shape[:len(s)-1].Elems()))}
			for _, alias := range []map[int]int{nil, {0: 0}} {
				twin{op: rmsNormBwd(x, false), in: rstd, alias: alias}.run(t, r)
			}
			for _, alias := range []map[int]int{nil, {0: 0}, {0: 4}} {
				twin{op: rmsNormBwd(x, true), in: rstd, alias: alias}.run(t, r)
			}
		}
	}
}

// TestRMSNormUnwanted: without rstd, sum or dw the other outputs are the same.
func TestRMSNormUnwanted(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	x := npu.D(npu.BF16, 3, 50)
	for op, nils := range map[*npu.Op][]int{{Kind: "f"}: {1}, {Kind: "fs"}: {1, 2}, {Kind: "b"}: {1}} {
		if *op = map[string]npu.Op{"f": rmsNorm(x, false), "fs": rmsNorm(x, true), "b": rmsNormBwd(x, true)}[op.Kind]; op.Kind == "" {
			t.Fatal()
		}
		call, _ := kern.Prepare(*op)
		m := newMemory(t, 1<<16)
		defer m.free()
		var all, some []unsafe.Pointer
		for _, d := range op.In {
			b := m.take(d.PlainBytes())
			copy(b, random(r, d))
			all = append(all, ptr(b))
		}
		some = append(some, all...)
		var y [2][]byte
		for i := range op.Out {
			a, b := m.take(op.Out[i].PlainBytes()), m.take(op.Out[i].PlainBytes())
			if all, some = append(all, ptr(a)), append(some, ptr(b)); i == 0 {
				y = [2][]byte{a, b}
			}
		}
		for _, i := range nils {
			some[len(op.In)+i] = nil
		}
		ws := m.take(call.Workspace())
		for _, args := range [][]unsafe.Pointer{all, some} {
			cmd, err := call.Bind(args, ptr(ws), 1)
			if err == nil {
				err = cmd.Run(1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(y[0], y[1]) || bytes.Count(y[0], []byte{0}) == len(y[0]) {
			t.Errorf("%s differs where outputs are unwanted", op)
		}
	}
}

func TestRope(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	llama3 := npu.Attrs{"theta": 500000.0, "factor": 8.0, "low": 1.0, "high": 4.0, "original": 8192}
	for _, dt := range acts {
		for _, s := range [][]int{{1, 1, 1, 2}, {2, 3, 2, 8}, {1, 5, 3, 48}, {2, 1, 2, 64}, {1, 40, 1, 100}, {1, 2, 2, 128}} {
			for bits := range 8 {
				a := npu.Attrs{"theta": 10000.0}
				if bits&1 != 0 {
					a = llama3.Clone()
				}
				a["inverse"] = bits&2 != 0
				a["pairs"] = map[bool]string{false: "half", true: "adjacent"}[bits&4 != 0]
				x := npu.D(dt, s...)
				op := npu.Op{Kind: npu.Rope, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{x}}
				twin{op: op, alias: map[int]int{0: 0}}.run(t, r)
				for _, hi := range []int{s[1], 3 * s[1], 100000} {
					op := op.Clone()
					op.Attrs = a.Clone()
					op.Attrs["pos"] = true
					op.In = append(op.In, npu.D(npu.I32, s[0], s[1]))
					twin{op: op, in: [][]byte{nil, ints(r, s[0]*s[1], -1, hi)}}.run(t, r)
				}
			}
		}
	}
}

// TestRopeTableIsShared: kernels of equal positions and frequencies have one table, whatever their heads and direction; others have another.
func TestRopeTableIsShared(t *testing.T) {
	call := func(theta float64, inverse bool, s ...int) *kern.Call {
		x := npu.D(npu.F32, s...)
		c, ok := kern.Prepare(
			npu.Op{Kind: npu.Rope, Attrs: npu.Attrs{"theta": theta, "pairs": "half", "inverse": inverse}, In: []npu.Desc{x}, Out: []npu.Desc{x}},
		)
		if !ok {
			t.Fatal("no rope")
		}
		return c
	}
	a := call(10000, false, 2, 9, 4, 16)
	if b := call(10000, true, 1, 9, 2, 16); kern.Table(a) != kern.Table(b) {
		t.Error("two tables of the same numbers")
	}
	if b := call(10001, false, 2, 9, 4, 16); kern.Table(a) == kern.Table(b) {
		t.Error("one table for two thetas")
	}
	if b := call(10000, false, 2, 10, 4, 16); kern.Table(a) == kern.Table(b) {
		t.Error("one table for two lengths")
	}
}

func TestSwiGLU(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{1}, {37}, {3, 1000}, {2, 5, 7, 9}} {
			x := npu.D(dt, s...)
			fwd := npu.Op{Kind: npu.SwiGLU, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
			for _, alias := range []map[int]int{nil, {0: 0}, {0: 1}} {
				twin{op: fwd, alias: alias}.run(t, r)
			}
			bwd := npu.Op{Kind: npu.SwiGLUBwd, In: []npu.Desc{x, x, x}, Out: []npu.Desc{x, x}}
			for _, alias := range []map[int]int{nil, {0: 1, 1: 2}, {0: 0, 1: 2}, {0: 1, 1: 0}, {1: 2}} {
				twin{op: bwd, alias: alias}.run(t, r)
			}
		}
	}
	// Each value by itself, lest the largest hide the others. (From -87 to -103 results below 1e-35 become 0 early.)
	for _, g := range []float64{0, 1e-30, 1, 20, -20, 80, 87.5, 100, 1000, 3e38, -80, -86.9, -105, -1000, -3e38, math.NaN(), math.Inf(1)} {
		x := npu.D(npu.F32, 1)
		v := make([]byte, 4)
		put(v, 0, npu.F32, g)
		twin{op: npu.Op{Kind: npu.SwiGLU, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}, in: [][]byte{v}, tol: 2e-6}.run(t, r)
		twin{
			op:   npu.Op{Kind: npu.SwiGLUBwd, In: []npu.Desc{x, x, x}, Out: []npu.Desc{x, x}},
			in:   [][]byte{nil, v},
			tol:  2e-6,
			skip: map[int]bool{0: math.IsInf(g, 0)},
		}.run(
			t,
			r,
		)
	}
}

func fewRows(dt, out npu.DType, m, k, n int, bias bool) npu.Op {
	a := npu.Attrs{"tb": true, "bias": bias}
	if out != dt {
		a["out"] = "f32"
	}
	op := npu.Op{Kind: npu.MatMul, Attrs: a, In: []npu.Desc{npu.D(dt, m, k), npu.D(dt, n, k)}, Out: []npu.Desc{npu.D(out, m, n)}}
	if bias {
		op.In = append(op.In, npu.D(npu.F32, n))
	}
	return op
}

func TestFewRows(t *testing.T) {
	defer kern.Apart(-1)
	for way := range 2 {
		kern.Apart(way)
		r := rand.New(rand.NewPCG(26, 1))
		for m := 1; m <= 8; m++ {
			for _, k := range []int{1, 16, 33, 300} {
				for _, n := range []int{1, 3, 9, 70} {
					twin{op: fewRows(npu.F32, npu.F32, m, k, n, n < 9)}.run(t, r)
					twin{op: fewRows(npu.BF16, npu.F32, m, k, n, n < 9)}.run(t, r)
					twin{op: fewRows(npu.BF16, npu.BF16, m, k, n, n > 3)}.run(t, r)
				}
			}
		}
	}
}

// TestFewRowsEitherWay: how the matrix is walked does not change a bit, also where a row of a is used in several pieces.
func TestFewRowsEitherWay(t *testing.T) {
	defer kern.Apart(-1)
	r := rand.New(rand.NewPCG(26, 2))
	for _, s := range [][3]int{{1, 288, 301}, {1, 7000, 67}, {3, 512, 130}, {8, 1000, 45}} {
		for _, dt := range []npu.DType{npu.F32, npu.BF16} {
			op := fewRows(dt, npu.F32, s[0], s[1], s[2], true)
			in := [][]byte{random(r, op.In[0]), random(r, op.In[1]), random(r, op.In[2])}
			for isa := range kern.ISAs() {
				call, ok := kern.PrepareFor(op, isa)
				if !ok {
					t.Fatalf("no kernel for %s", op)
				}
				for threads := 1; threads <= 2; threads++ {
					var got [2][]byte
					for way := range got {
						kern.Apart(way)
						got[way] = twin{op: op}.exec(t, call, in, threads)[0]
					}
					if !bytes.Equal(got[0], got[1]) {
						t.Errorf("%s, %s, %d threads: streams and neighbours differ", op, kern.ISAs()[isa], threads)
					}
				}
			}
		}
	}
}

// TestManyRowsAreLeft: with more rows, or a matrix the other way round, the library is better.
func TestManyRowsAreLeft(t *testing.T) {
	nn := npu.Op{Kind: npu.MatMul, In: []npu.Desc{npu.D(npu.F32, 2, 5), npu.D(npu.F32, 5, 7)}, Out: []npu.Desc{npu.D(npu.F32, 2, 7)}}
	for _, op := range []npu.Op{fewRows(npu.F32, npu.F32, 9, 5, 7, false), nn} {
		if _, ok := kern.Prepare(op); ok {
			t.Errorf("%s is taken", op)
		}
	}
}
