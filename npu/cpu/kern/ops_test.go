//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

var acts = []npu.DType{npu.F32, npu.BF16}

func TestElementwise(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{1}, {37}, {1024}, {3, 1000}, {2, 32, 5, 3}} {
			ls := []npu.Layout{npu.Plain}
			if len(s) == 4 {
				ls = layouts(s[1])
			}
			for _, l := range ls {
				x := in(dt, l, s...)
				one, two := []npu.Desc{x}, []npu.Desc{x, x}
				twin{op: npu.Op{Kind: npu.Relu, In: one, Out: one}}.run(t, r)
				twin{op: npu.Op{Kind: npu.Relu, In: one, Out: one}, alias: map[int]int{0: 0}}.run(t, r)
				twin{op: npu.Op{Kind: npu.ReluBwd, In: two, Out: one}, alias: map[int]int{0: 0}}.run(t, r)
				for _, fn := range []string{"add", "sub", "mul", "max", "min", "gt", "ge", "eq"} {
					a := npu.Attrs{"fn": fn, "relu": r.IntN(2) == 0}
					twin{op: npu.Op{Kind: npu.Binary, Attrs: a, In: two, Out: one}, alias: map[int]int{0: 0}}.run(t, r)
				}
				for _, fn := range []string{"neg", "exp", "square", "abs", "tanh", "sigmoid", "silu", "sign", "affine"} {
					a := npu.Attrs{"fn": fn}
					if fn == "affine" {
						a["alpha"], a["beta"] = 1.5, -0.25
					}
					twin{op: npu.Op{Kind: npu.Unary, Attrs: a, In: one, Out: one}, alias: map[int]int{0: 0}}.run(t, r)
				}
				pos := make([]byte, x.PlainBytes())
				for i := range int(x.Shape.Elems()) {
					put(pos, i, dt, math.Exp(r.NormFloat64()))
				}
				for _, fn := range []string{"log", "sqrt", "rsqrt", "recip"} {
					twin{op: npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": fn}, In: one, Out: one}, in: [][]byte{pos}}.run(t, r)
				}
				twin{op: npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "div"}, In: two, Out: one}, in: [][]byte{nil, pos}}.run(t, r)
			}
		}
	}
}

// TestSpecialValues: infinities, NaN, overflow and denormals end as in float64 arithmetic, rounded.
func TestSpecialValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	inf, nan := math.Inf(1), math.NaN()
	vals := []float64{0, math.Copysign(0, -1), inf, -inf, nan, 88.7, 88.8, -87, -103, -104.5, 1000, -1000, 1e-30, 3e38, -3e38, 0.3, 20, -20}
	x := npu.D(npu.F32, len(vals))
	data := make([]byte, x.PlainBytes())
	for i, v := range vals {
		put(data, i, npu.F32, v)
	}
	for _, fn := range []string{"neg", "exp", "square", "abs", "tanh", "sigmoid", "silu", "sign", "recip", "sqrt", "log"} {
		op := npu.Op{Kind: npu.Unary, Attrs: npu.Attrs{"fn": fn}, In: []npu.Desc{x}, Out: []npu.Desc{x}}
		// Each value by itself: the largest of them must not hide the others.
		for i := range vals {
			one := op.Clone()
			one.In[0].Shape, one.Out[0].Shape = npu.Shape{1}, npu.Shape{1}
			if fn == "silu" && vals[i] == -inf { // -Inf·0 in float64; the limit, 0, is not what it computes either
				continue
			}
			twin{op: one, in: [][]byte{data[4*i : 4*i+4]}, tol: 2e-6}.run(t, r)
		}
	}
	two := make([]byte, x.PlainBytes())
	for i := range vals {
		put(two, i, npu.F32, vals[(i*5+3)%len(vals)])
	}
	for _, fn := range []string{"add", "max", "min", "gt", "ge", "eq"} {
		op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": fn, "relu": true}, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
		twin{op: op, in: [][]byte{data, two}}.run(t, r)
	}
	twin{op: npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{x}}, in: [][]byte{data}}.run(t, r)
	up := npu.Op{Kind: npu.Convert, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(npu.BF16, len(vals))}}
	twin{op: up, in: [][]byte{data}}.run(t, r)
}

func TestBroadcast(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for _, c := range [][3][]int{
		{{2, 3, 4, 5}, {3, 1, 1}, {2, 3, 4, 5}}, {{7, 300}, {300}, {7, 300}}, {{7, 1}, {1, 520}, {7, 520}}, {{}, {4, 3}, {4, 3}}, {{1}, {1}, {1}}, {{5, 1, 6}, {2, 1}, {5, 2, 6}},
		{{2, 1, 3, 1}, {1, 4, 1, 5}, {2, 4, 3, 5}},
	} {
		for _, dt := range acts {
			for _, fn := range []string{"add", "sub", "mul"} {
				op := npu.Op{
					Kind:  npu.Binary,
					Attrs: npu.Attrs{"fn": fn},
					In:    []npu.Desc{npu.D(dt, c[0]...), npu.D(dt, c[1]...)},
					Out:   []npu.Desc{npu.D(dt, c[2]...)},
				}
				twin{op: op}.run(t, r)
			}
		}
		x, y := npu.D(npu.F32, c[0]...), npu.D(npu.F32, c[2]...)
		twin{op: npu.Op{Kind: npu.BroadcastTo, Attrs: npu.Attrs{"shape": c[2]}, In: []npu.Desc{x}, Out: []npu.Desc{y}}}.run(t, r)
	}
}

func TestConvert(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for _, c := range [][2]npu.DType{{npu.F32, npu.BF16}, {npu.BF16, npu.F32}} {
		for _, n := range []int{1, 15, 5000} {
			twin{op: npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(c[0], n)}, Out: []npu.Desc{npu.D(c[1], n)}}}.run(t, r)
		}
	}
	for _, l := range layouts(48) {
		x, y := in(npu.F32, l, 2, 48, 7, 9), in(npu.BF16, l, 2, 48, 7, 9)
		twin{op: npu.Op{Kind: npu.Convert, In: []npu.Desc{x}, Out: []npu.Desc{y}}}.run(t, r)
		twin{op: npu.Op{Kind: npu.Convert, In: []npu.Desc{x}, Out: []npu.Desc{x}}}.run(t, r)
	}
}

func TestOptimizers(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	h := func(v ...float64) []byte {
		b := make([]byte, 4*len(v))
		for i, x := range v {
			put(b, i, npu.F32, x)
		}
		return b
	}
	for _, n := range []int{1, 50, 3001} {
		hy, v, s := npu.D(npu.F32, 8), npu.D(npu.F32, n), npu.D(npu.F64, 2)
		for _, first := range []float64{0, 1} {
			for _, nesterov := range []bool{false, true} {
				a := npu.Attrs{"nesterov": nesterov, "decoupled": first == 0, "has_momentum": true}
				twin{
					op:    npu.Op{Kind: npu.SGD, Attrs: a, In: []npu.Desc{hy, v, v, v}, Out: []npu.Desc{v, v}},
					in:    [][]byte{h(0.1, 0.5, 0.9, 0.01, 0.2, first, 0, 0)},
					alias: map[int]int{0: 1, 1: 3},
				}.run(
					t,
					r,
				)
				norms := make([]byte, 16)
				put(norms, 0, npu.F64, 7)
				l := npu.Op{Kind: npu.LARS, Attrs: npu.Attrs{"skip": first == 1 && nesterov}, In: []npu.Desc{hy, v, v, v, s, s}, Out: []npu.Desc{v, v}}
				twin{
					op:    l,
					in:    [][]byte{h(0.1, 0.5, 0.9, 0.01, 0.02, 1e-8, first, float64(bit(nesterov))), nil, nil, nil, norms, norms},
					alias: map[int]int{0: 1, 1: 3},
				}.run(
					t,
					r,
				)
			}
		}
		plainSGD := npu.Op{Kind: npu.SGD, Attrs: npu.Attrs{"decoupled": true}, In: []npu.Desc{hy, v, v}, Out: []npu.Desc{v}}
		twin{op: plainSGD, in: [][]byte{h(0.1, 0.5, 0, 0.01, 0, 0, 0, 0)}, alias: map[int]int{0: 1}}.run(t, r)
		for _, coupled := range []bool{false, true} {
			op := npu.Op{Kind: npu.AdamW, Attrs: npu.Attrs{"coupled": coupled}, In: []npu.Desc{npu.D(npu.F32, 9), v, v, v, v}, Out: []npu.Desc{v, v, v}}
			twin{
				op:    op,
				in:    [][]byte{h(1e-2, 0.5, 0.9, 0.99, 1e-8, 0.1, 0.19, 0.0199, 2), nil, nil, nil, positive(n)},
				alias: map[int]int{0: 1, 1: 3, 2: 4},
			}.run(
				t,
				r,
			)
		}
		nine := npu.D(npu.F32, 9)
		hyper := h(1e-2, 0.5, 0.9, 0.99, 1e-6, 0.1, 0.19, 0.0199, 2)
		twin{
			op:    npu.Op{Kind: npu.LAMBMoments, In: []npu.Desc{nine, v, v, v, v}, Out: []npu.Desc{s, v, v}},
			in:    [][]byte{hyper, nil, nil, nil, positive(n)},
			alias: map[int]int{1: 3, 2: 4},
		}.run(t, r)
		for _, sums := range [][2]float64{{3, 7}, {7, 3}, {0, 3}, {3, 0}} {
			norms := make([]byte, 16)
			put(norms, 0, npu.F64, sums[0])
			put(norms, 1, npu.F64, sums[1])
			twin{
				op:    npu.Op{Kind: npu.LAMB, Attrs: npu.Attrs{"clip": sums[0] == 7 && n > 1}, In: []npu.Desc{nine, v, v, v, s}, Out: []npu.Desc{v}},
				in:    [][]byte{hyper, nil, nil, positive(n), norms},
				alias: map[int]int{0: 1},
			}.run(t, r)
		}
		g := random(r, v)
		put(g, n/2, npu.F32, math.Inf(-1))
		start := make([]byte, 16)
		put(start, 0, npu.F64, 3)
		put(start, 1, npu.F64, 4)
		sum := npu.Op{Kind: npu.SumSq, In: []npu.Desc{v}, Out: []npu.Desc{s}}
		twin{op: sum, initial: map[int][]byte{0: start}}.run(t, r)
		twin{op: sum, in: [][]byte{g}, initial: map[int][]byte{0: start}}.run(t, r)
		twin{op: npu.Op{Kind: npu.SumSq, In: []npu.Desc{v, s}, Out: []npu.Desc{s}}, in: [][]byte{nil, start}, alias: map[int]int{0: 1}}.run(t, r)
		twin{op: npu.Op{Kind: npu.EMA, In: []npu.Desc{npu.D(npu.F32, 2), v, v}, Out: []npu.Desc{v}}, alias: map[int]int{0: 1}}.run(t, r)
		twin{op: npu.Op{Kind: npu.Scale, In: []npu.Desc{npu.D(npu.F32, 1), v}, Out: []npu.Desc{v}}, alias: map[int]int{0: 1}}.run(t, r)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestNotInPlace(t *testing.T) {
	v := npu.D(npu.F32, 4)
	c, ok := kern.Prepare(npu.Op{Kind: npu.SGD, In: []npu.Desc{npu.D(npu.F32, 8), v, v}, Out: []npu.Desc{v}})
	if !ok {
		t.Fatal("no sgd")
	}
	m := newMemory(t, 1<<12)
	defer m.free()
	a, b := ptr(m.take(64)), ptr(m.take(64))
	if _, err := c.Bind([]unsafe.Pointer{a, a, a, b}, nil, 1); err == nil || !strings.Contains(err.Error(), "output 0") {
		t.Errorf("%v", err)
	}
}

func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{3, 1}, {5, 10}, {2, 3, 130}, {4, 1000}} {
			x := npu.D(dt, s...)
			one, two := []npu.Desc{x}, []npu.Desc{x, x}
			for _, k := range []string{npu.Softmax, npu.LogSoftmax} {
				twin{op: npu.Op{Kind: k, In: one, Out: one}}.run(t, r)
			}
			for _, k := range []string{npu.SoftmaxBwd, npu.LogSoftmaxBwd} {
				twin{op: npu.Op{Kind: k, In: two, Out: one}, tol: map[npu.DType]float64{npu.F32: 1e-5, npu.BF16: 1e-2}[dt]}.run(t, r)
			}
		}
	}
}

func labels(r *rand.Rand, n, classes int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		v := float64(r.IntN(classes))
		if i%4 == 3 {
			v = -100
		}
		put(b, i, npu.I32, v)
	}
	return b
}

func TestCrossEntropy(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{1, 1}, {6, 10}, {17, 1000}, {5, 131}} {
			for _, eps := range []float64{0, 0.1} {
				a, top := npu.Attrs{"smoothing": eps}, npu.Attrs{"k": min(3, s[1])}
				x, l, f, rows := npu.D(dt, s...), npu.D(npu.I32, s[0]), npu.D(npu.F32), npu.D(npu.F32, s[0])
				lb := labels(r, s[0], s[1])
				logits := random(r, x)
				twin{op: npu.Op{Kind: npu.CrossEntropy, Attrs: a, In: []npu.Desc{x, l}, Out: []npu.Desc{f, f, rows}}, in: [][]byte{logits, lb}}.run(t, r)
				lse := make([]byte, 4*s[0])
				for i := range s[0] {
					sum := 0.0
					for j := range s[1] {
						sum += math.Exp(get(logits, i*s[1]+j, dt))
					}
					put(lse, i, npu.F32, math.Log(sum))
				}
				bwd := npu.Op{Kind: npu.CrossEntropyBwd, Attrs: a, In: []npu.Desc{x, l, rows, f}, Out: []npu.Desc{x}}
				twin{op: bwd, in: [][]byte{logits, lb, lse}, alias: map[int]int{0: 0}}.run(t, r)
				twin{op: npu.Op{Kind: npu.TopK, Attrs: top, In: []npu.Desc{x, l}, Out: []npu.Desc{f}}, in: [][]byte{nil, lb}}.run(t, r)
			}
		}
	}
}

func TestLabelOutOfRange(t *testing.T) {
	x, l, f := npu.D(npu.F32, 3, 5), npu.D(npu.I32, 3), npu.D(npu.F32)
	call, ok := kern.Prepare(npu.Op{Kind: npu.CrossEntropy, In: []npu.Desc{x, l}, Out: []npu.Desc{f}})
	if !ok {
		t.Fatal("no cross_entropy")
	}
	m := newMemory(t, 1<<16)
	defer m.free()
	lb := m.take(12)
	put(lb, 1, npu.I32, 5)
	cmd, err := call.Bind([]unsafe.Pointer{ptr(m.take(60)), ptr(lb), ptr(m.take(4))}, ptr(m.take(call.Workspace())), 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cmd.Run(1); err == nil || !strings.Contains(err.Error(), "row 1: label 5 outside 0…4\nhint: ") {
			t.Errorf("%v", err)
		}
	}
	put(lb, 1, npu.I32, 4)
	if err := cmd.Run(1); err != nil || cmd.Err() != nil {
		t.Errorf("after the label was mended: %v", err)
	}
}

// TestLosses compares the losses with dense targets in all builds of the kernels, and on several threads; package nputest has the unusual values.
func TestLosses(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 2))
	for _, dt := range acts {
		for _, s := range [][]int{{1, 1}, {6, 10}, {17, 1000}, {5, 131}, {2, 9000}} {
			x, f, y, rows := npu.D(dt, s...), npu.D(npu.F32), npu.D(npu.F32, s...), npu.D(npu.F32, s[0])
			pos := make([]float64, s[1])
			for i := range pos {
				pos[i] = float64(i % 3)
			}
			for _, w := range []bool{false, true} {
				in := []npu.Desc{x, y}
				if w {
					in = append(in, rows)
				}
				a := npu.Attrs{"weighted": w}
				back := append(in[:len(in):len(in)], f)
				twin{op: npu.Op{Kind: npu.MSE, Attrs: a, In: in, Out: []npu.Desc{f, f}}}.run(t, r)
				twin{op: npu.Op{Kind: npu.MSEBwd, Attrs: a, In: back, Out: []npu.Desc{x}}, alias: map[int]int{0: 0}}.run(t, r)
				a = npu.Attrs{"weighted": w, "pos_weight": pos}
				twin{op: npu.Op{Kind: npu.BCE, Attrs: a, In: in, Out: []npu.Desc{f, f}}}.run(t, r)
				twin{op: npu.Op{Kind: npu.BCEBwd, Attrs: a, In: back, Out: []npu.Desc{x}}, alias: map[int]int{0: 0}}.run(t, r)
			}
			twin{op: npu.Op{Kind: npu.SoftCrossEntropy, In: []npu.Desc{x, y}, Out: []npu.Desc{f, f, rows}}}.run(t, r)
			one := npu.Op{Kind: npu.OneHot, Attrs: npu.Attrs{"classes": s[1], "weights": pos}, In: []npu.Desc{npu.D(npu.I32, s[0])}, Out: []npu.Desc{y, rows}}
			twin{op: one, in: [][]byte{labels(r, s[0], s[1])}}.run(t, r)
		}
	}
}

func TestGlobalAvgPool(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{2, 32, 7, 7}, {3, 5, 2, 9}, {1, 64, 1, 1}, {2, 19, 6, 5}} {
			for _, l := range layouts(s[1]) {
				x, y := in(dt, l, s...), npu.D(dt, s[0], s[1])
				twin{op: npu.Op{Kind: npu.GlobalAvgPool, In: []npu.Desc{x}, Out: []npu.Desc{y}}}.run(t, r)
				twin{op: npu.Op{Kind: npu.GlobalAvgPoolBwd, Attrs: npu.Attrs{"x_shape": s}, In: []npu.Desc{y}, Out: []npu.Desc{x}}}.run(t, r)
			}
		}
	}
}

func TestDropout(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	for _, dt := range acts {
		for _, n := range []int{1, 100, 5000} {
			for _, p := range []float64{0, 0.1, 0.5, 0.999} {
				x := npu.D(dt, n)
				seed := make([]byte, 8)
				for i := range seed {
					seed[i] = byte(r.IntN(256))
				}
				a := npu.Attrs{"p": p, "id": r.IntN(50)}
				twin{
					op:    npu.Op{Kind: npu.Dropout, Attrs: a, In: []npu.Desc{x, npu.D(npu.I64)}, Out: []npu.Desc{x}},
					in:    [][]byte{nil, seed},
					alias: map[int]int{0: 0},
				}.run(
					t,
					r,
				)
			}
		}
	}
}

// Rows that are dropped together, in each layout, with rows shorter and longer than a block of the loop.
func TestDropoutRows(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 2))
	for _, dt := range acts {
		for _, x := range []npu.Desc{
			npu.D(dt, 5), npu.D(dt, 700, 3), npu.D(dt, 3, 5000), npu.D(dt, 4, 6, 5, 7), npu.D(dt, 4, 32, 5, 7).With(kern.NChw16c),
			npu.D(dt, 4, 32, 5, 7).With(kern.NChw8c), npu.D(dt, 9, 6, 5, 7).With(kern.NHWC),
		} {
			for _, p := range []float64{0, 0.3, 0.9} {
				seed := make([]byte, 8)
				for i := range seed {
					seed[i] = byte(r.IntN(256))
				}
				a := npu.Attrs{"p": p, "id": r.IntN(50), "rows": true}
				op := npu.Op{Kind: npu.Dropout, Attrs: a, In: []npu.Desc{x, npu.D(npu.I64)}, Out: []npu.Desc{x}}
				twin{op: op, in: [][]byte{nil, seed}, alias: map[int]int{0: 0}}.run(t, r)
			}
		}
	}
}

func TestReduce(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	for _, dt := range acts {
		for _, s := range [][]int{{1}, {3000}, {4, 600}, {3, 1, 5, 70}, {2, 3, 4, 5}, {1, 1}} {
			for mask := range 1 << len(s) {
				axes, y := []int{}, npu.Shape{}
				for i, n := range s {
					if mask>>i&1 == 1 {
						axes = append(axes, i)
					} else {
						y = append(y, n)
					}
				}
				for _, fn := range []string{"sum", "mean", "max"} {
					twin{
						op: npu.Op{
							Kind:  npu.Reduce,
							Attrs: npu.Attrs{"fn": fn, "axes": axes},
							In:    []npu.Desc{npu.D(dt, s...)},
							Out:   []npu.Desc{npu.D(dt, y...)},
						},
					}.run(
						t,
						r,
					)
				}
			}
		}
	}
}

func TestMove(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for _, dt := range []npu.DType{npu.F32, npu.BF16, npu.U8, npu.F64} {
		for _, c := range []struct{ s, perm []int }{
			{[]int{5}, []int{0}}, {[]int{70, 33}, []int{1, 0}}, {[]int{3, 4, 5}, []int{2, 0, 1}}, {[]int{2, 17, 9, 8}, []int{0, 2, 3, 1}}, {[]int{2, 9, 8, 17}, []int{0, 3, 1, 2}}, {[]int{2, 3, 4, 5}, []int{0, 2, 1, 3}},
			{[]int{1, 6, 1, 4}, []int{3, 2, 1, 0}},
		} {
			y := npu.Shape{}
			for _, p := range c.perm {
				y = append(y, c.s[p])
			}
			twin{
				op: npu.Op{Kind: npu.Transpose, Attrs: npu.Attrs{"perm": c.perm}, In: []npu.Desc{npu.D(dt, c.s...)}, Out: []npu.Desc{npu.D(dt, y...)}},
			}.run(
				t,
				r,
			)
		}
		x := npu.D(dt, 4, 5, 6)
		twin{
			op: npu.Op{
				Kind:  npu.Slice,
				Attrs: npu.Attrs{"begin": []int{1, 0, 2}, "end": []int{3, 5, 6}},
				In:    []npu.Desc{x},
				Out:   []npu.Desc{npu.D(dt, 2, 5, 4)},
			},
		}.run(
			t,
			r,
		)
		twin{
			op: npu.Op{
				Kind:  npu.Pad,
				Attrs: npu.Attrs{"before": []int{1, 0, 2}, "after": []int{0, 3, 1}},
				In:    []npu.Desc{x},
				Out:   []npu.Desc{npu.D(dt, 5, 8, 9)},
			},
		}.run(
			t,
			r,
		)
		twin{op: npu.Op{Kind: npu.Reshape, In: []npu.Desc{x}, Out: []npu.Desc{npu.D(dt, 120)}}}.run(t, r)
		twin{op: npu.Op{Kind: npu.Fill, Attrs: npu.Attrs{"value": 3.0}, Out: []npu.Desc{npu.D(dt, 5000)}}}.run(t, r)
		for axis := range 3 {
			a, b, y := npu.D(dt, 4, 5, 6), npu.D(dt, 4, 5, 6), npu.D(dt, 4, 5, 6)
			b.Shape[axis], y.Shape[axis] = 3, a.Shape[axis]*2+3
			twin{op: npu.Op{Kind: npu.Concat, Attrs: npu.Attrs{"axis": axis}, In: []npu.Desc{a, b, a}, Out: []npu.Desc{y}}}.run(t, r)
		}
	}
	for _, l := range layouts(16) {
		a, b, y := in(npu.BF16, l, 2, 16, 3, 5), in(npu.BF16, l, 2, 48, 3, 5), in(npu.BF16, l, 2, 64, 3, 5)
		twin{op: npu.Op{Kind: npu.Concat, Attrs: npu.Attrs{"axis": 1}, In: []npu.Desc{a, b}, Out: []npu.Desc{y}}}.run(t, r)
	}
}

// TestRefused: what no kernel takes is left to others, not computed wrongly.
func TestRefused(t *testing.T) {
	f := npu.D(npu.F32, 2, 17, 3, 3)
	odd, odd8, foreign := f.With(kern.NChw16c), f.With(kern.NChw8c), f.With("w:1")
	for _, op := range []npu.Op{
		{Kind: npu.Relu, In: []npu.Desc{odd}, Out: []npu.Desc{odd}},
		{Kind: npu.Relu, In: []npu.Desc{odd8}, Out: []npu.Desc{odd8}},
		{Kind: npu.Relu, In: []npu.Desc{foreign}, Out: []npu.Desc{foreign}},
		{Kind: npu.Relu, In: []npu.Desc{f.With(kern.NHWC)}, Out: []npu.Desc{f}},
		{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F64, 3)}, Out: []npu.Desc{npu.D(npu.F64, 3)}},
		{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.F32, 3)}, Out: []npu.Desc{npu.D(npu.F32, 4)}},
		{Kind: npu.Softmax, In: []npu.Desc{f.With(kern.NHWC)}, Out: []npu.Desc{f.With(kern.NHWC)}},
		{Kind: npu.Conv2D}, {Kind: "nope"},
	} {
		if _, ok := kern.Prepare(op); ok {
			t.Errorf("%s is taken", op)
		}
	}
}
