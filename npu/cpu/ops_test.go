//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/dnnl"
)

// opCase is an op, how its inputs are made, and the size that errors of its outputs are measured against.
type opCase struct {
	op    npu.Op
	fill  map[int]func(i int) float64 // by input; default: normal
	alias map[int]int                 // output at the place of input
	scale float64                     // default 1
	tol   float64                     // of float32, default 4e-6
	impl  string                      // wanted prefix of Impl, if any
}

func (c opCase) check(t *testing.T, g *rig, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	var in [][]byte
	for i, d := range c.op.In {
		fn := normal(r)
		if f, ok := c.fill[i]; ok {
			fn = f
		}
		in = append(in, tensor(d, fn))
	}
	exp := want(t, c.op, in)
	k, got := g.run(c.op, in, c.alias)
	if !strings.HasPrefix(k.Impl(), c.impl) {
		t.Errorf("%s is executed by %s, want %s", c.op, k.Impl(), c.impl)
	}
	for j, d := range c.op.Out {
		if got[j] == nil {
			continue
		}
		tol := c.tol
		if tol == 0 {
			tol = 4e-6
		}
		if d.DType == npu.BF16 {
			tol = 1.0 / 128
		}
		compare(t, fmt.Sprintf("%s by %s, output %d", c.op, k.Impl(), j), d.With(npu.Plain), got[j], exp[j], tol, max(c.scale, 1))
	}
}

var floatTypes = []npu.DType{npu.F32, npu.BF16}

func TestMatMul(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		r := rand.New(rand.NewPCG(5, 5))
		for i := range 32 {
			m, n, k := 1+r.IntN(40), 1+r.IntN(70), 1+r.IntN(90)
			if i >= 20 {
				k = 63 // the one that oneDNN 2.6 gets wrong with AMX
				m, n = 53+r.IntN(40), 40+r.IntN(60)
			}
			var lead []int
			for range r.IntN(3) {
				lead = append(lead, 1+r.IntN(3))
			}
			for _, dt := range floatTypes {
				for _, out := range []npu.DType{npu.F32, dt} {
					a := npu.Attrs{"ta": i&1 != 0, "tb": i&2 != 0, "bias": i&4 != 0}
					as, bs := []int{m, k}, []int{k, n}
					if a.Bool("ta") {
						as = []int{k, m}
					}
					if a.Bool("tb") {
						bs = []int{n, k}
					}
					shape := func(s []int) []int { return append(append([]int{}, lead...), s...) }
					op := npu.Op{
						Kind:  npu.MatMul,
						Attrs: a,
						In:    []npu.Desc{npu.D(dt, shape(as)...), npu.D(dt, shape(bs)...)},
						Out:   []npu.Desc{npu.D(out, shape([]int{m, n})...)},
					}
					if a.Bool("bias") {
						op.In = append(op.In, npu.D(npu.F32, n))
					}
					opCase{op: op, scale: math.Sqrt(float64(k)), impl: "dnnl:"}.check(t, g, uint64(i))
				}
			}
			if t.Failed() {
				return
			}
		}
	})
}

func poolCases(t npu.DType) []opCase {
	var list []opCase
	for i, c := range []struct {
		n, c, h, w, k, s, p int
		include             bool
	}{{2, 16, 12, 12, 3, 2, 1, false}, {2, 64, 7, 9, 2, 2, 0, true}, {1, 5, 8, 8, 3, 1, 1, true}, {2, 32, 10, 11, 3, 2, 1, false}} {
		oh, ow := (c.h+2*c.p-c.k)/c.s+1, (c.w+2*c.p-c.k)/c.s+1
		x, y := npu.D(t, c.n, c.c, c.h, c.w).With(npu.Any), npu.D(t, c.n, c.c, oh, ow).With(npu.Any)
		a := npu.Attrs{"kernel": []int{c.k, c.k}, "stride": []int{c.s, c.s}, "pad": []int{c.p, c.p, c.p, c.p}, "include_pad": c.include}
		b, m := a.Clone(), a.Clone()
		b["x_shape"] = []int(x.Shape)
		delete(m, "include_pad")
		list = append(list, opCase{op: npu.Op{Kind: npu.AvgPool, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{y}}, impl: "dnnl:"},
			opCase{op: npu.Op{Kind: npu.AvgPoolBwd, Attrs: b, In: []npu.Desc{y}, Out: []npu.Desc{x}}, impl: "dnnl:"},
			opCase{op: npu.Op{Kind: npu.MaxPool, Attrs: m, In: []npu.Desc{x}, Out: []npu.Desc{y}}, impl: "dnnl:"})
		if i == 0 {
			idx := npu.D(npu.I32, y.Shape...).With(npu.Any)
			list = append(list, opCase{op: npu.Op{Kind: npu.MaxPool, Attrs: m, In: []npu.Desc{x}, Out: []npu.Desc{y, idx}}, impl: "dnnl:"})
		}
	}
	return list
}

func TestPool(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		for _, dt := range floatTypes {
			for i, c := range poolCases(dt) {
				c.check(t, g, uint64(i))
			}
		}
	})
}

// The index of maxpool is the library's own; so forward and backward are checked together, for each layout of the input.
func TestMaxPoolBackward(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		x, y := npu.D(npu.F32, 2, 32, 9, 9), npu.D(npu.F32, 2, 32, 5, 5)
		idx := npu.D(npu.I32, 2, 32, 5, 5)
		a := npu.Attrs{"kernel": []int{3, 3}, "stride": []int{2, 2}, "pad": []int{1, 1, 1, 1}}
		b := a.Clone()
		b["x_shape"] = []int(x.Shape)
		r := rand.New(rand.NewPCG(1, 2))
		hx, hdy := tensor(x, normal(r)), tensor(y, normal(r))
		for _, l := range []npu.Layout{npu.Any, NHWC, NChw16c, NChw8c} {
			fwd, err := d.Choose(npu.Op{Kind: npu.MaxPool, Attrs: a, In: []npu.Desc{x.With(l)}, Out: []npu.Desc{y.With(npu.Any), idx.With(npu.Any)}})
			if err != nil {
				t.Fatal(err)
			}
			// The library's blocks have 16 channels with AVX-512 and 8 with AVX2; on arm64 it has no fast kernel for blocks.
			if l != npu.Any && fwd.In[0].Layout != l && (l == NHWC || l == d.prefer(npu.F32) && strings.Contains(d.isa, "avx")) {
				t.Errorf("layout %s of the input is not kept: %s", l, fwd)
			}
			py, pi := g.alloc(g.bytes(fwd.Out[0])), g.alloc(g.bytes(fwd.Out[1]))
			g.launch(fwd, []npu.Ptr{g.upload(fwd.In[0], hx), py, pi})
			bwd, err := d.Choose(npu.Op{Kind: npu.MaxPoolBwd, Attrs: b, In: []npu.Desc{y.With(npu.Any), fwd.Out[1]}, Out: []npu.Desc{x.With(npu.Any)}})
			if err != nil {
				t.Fatal(err)
			}
			if bwd.In[1].Layout != fwd.Out[1].Layout {
				t.Fatalf("the gradient wants the index in %s, the forward wrote %s", bwd.In[1].Layout, fwd.Out[1].Layout)
			}
			pdx := g.alloc(g.bytes(bwd.Out[0]))
			k := g.launch(bwd, []npu.Ptr{g.upload(bwd.In[0], hdy), pi, pdx})
			refIdx := want(t, npu.Op{Kind: npu.MaxPool, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{y, idx}}, [][]byte{hx})[1]
			exp := want(t, npu.Op{Kind: npu.MaxPoolBwd, Attrs: b, In: []npu.Desc{y, idx}, Out: []npu.Desc{x}}, [][]byte{hdy, refIdx})
			compare(t, "maxpool_bwd by "+k.Impl(), x, g.download(bwd.Out[0], pdx), exp[0], 1e-6, 1)
			// the index may be left out
			ck, err := d.Compile(fwd)
			if err != nil {
				t.Fatal(err)
			}
			ws := g.alloc(ck.Workspace())
			lc, err := ck.Bind([]npu.Ptr{g.upload(fwd.In[0], hx), py, {}}, ws)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.s.Run([]npu.Launch{lc}); err != nil {
				t.Fatal(err)
			}
			g.sync()
		}
	})
}

// Every layout to every other, with and without a change of dtype; what comes back must be what went in, rounded.
func TestConvert(t *testing.T) {
	for _, lib := range libraries(t) {
		d := open(t, npu.Options{Extra: map[string]string{"onednn": lib}})
		g := newRig(t, d)
		shape := npu.Shape{2, 32, 5, 3}
		r := rand.New(rand.NewPCG(3, 3))
		for _, from := range []npu.Layout{npu.Plain, NHWC, NChw16c, NChw8c} {
			for _, to := range []npu.Layout{npu.Plain, NHWC, NChw16c, NChw8c} {
				for _, a := range floatTypes {
					for _, b := range floatTypes {
						src := npu.Desc{Shape: shape, DType: a, Layout: from}
						host := tensor(src.With(npu.Plain), normal(r))
						dst := npu.Desc{Shape: shape, DType: b, Layout: to}
						op, err := d.Choose(npu.Op{Kind: npu.Convert, In: []npu.Desc{src}, Out: []npu.Desc{dst}})
						if err != nil {
							t.Fatal(err)
						}
						if !op.In[0].Equal(src) || !op.Out[0].Equal(dst) {
							t.Fatalf("Choose changed %s -> %s to %s", src, dst, op)
						}
						p, q := g.upload(src, host), g.alloc(g.bytes(dst))
						k := g.launch(op, []npu.Ptr{p, q})
						exp := want(t, npu.Op{Kind: npu.Convert, In: []npu.Desc{src}, Out: []npu.Desc{dst}}, [][]byte{host})
						compare(t, fmt.Sprintf("%s by %s", op, k.Impl()), dst.With(npu.Plain), g.download(dst, q), exp[0], 0, 0)
					}
				}
			}
		}
		for _, pair := range [][2]npu.DType{{npu.U8, npu.F32}, {npu.I32, npu.F32}, {npu.F32, npu.I32}, {npu.F64, npu.F32}, {npu.I64, npu.I32}, {npu.F32, npu.F64}} {
			opCase{op: npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(pair[0], 3, 7)}, Out: []npu.Desc{npu.D(pair[1], 3, 7)}},
				fill: map[int]func(int) float64{0: func(i int) float64 { return float64(i) + 0.5 }}}.check(t, g, 1)
		}
		opCase{op: npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(npu.F32)}, Out: []npu.Desc{npu.D(npu.BF16)}}}.check(t, g, 1) // a scalar
	}
}

// Grouped weights: five dimensions for the library, four for everyone else.
func TestConvertGroupedWeights(t *testing.T) {
	for _, lib := range libraries(t) {
		d := open(t, npu.Options{Extra: map[string]string{"onednn": lib}})
		g := newRig(t, d)
		c := convCase{2, 32, 8, 8, 64, 3, 3, 2, [2]int{1, 1}, [2]int{1, 1}, [4]int{1, 1, 1, 1}, false, false}
		op, err := d.Choose(c.ops(npu.F32)[0])
		if err != nil {
			t.Fatal(err)
		}
		w := op.In[1]
		if !isToken(w.Layout) {
			t.Skipf("%s: weights are plain", dnnlVersion(d.lib))
		}
		host := tensor(w.With(npu.Plain), normal(rand.New(rand.NewPCG(1, 1))))
		compare(t, "weights there and back", w.With(npu.Plain), g.download(w, g.upload(w, host)), host, 0, 0)
		master := w
		master.DType = npu.BF16
		if _, err := d.Bytes(master); err != nil {
			t.Errorf("the layout of weights in another dtype: %v", err)
		}
	}
}

func dnnlVersion(l *dnnl.Lib) string { return l.Version() }
