//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// convCase is one geometry; the generated ones add what nobody would write down.
type convCase struct {
	n, c, h, w, o, kh, kw, groups int
	stride, dilation              [2]int
	pad                           [4]int
	bias, relu                    bool
}

func (c convCase) attrs() npu.Attrs {
	return npu.Attrs{"stride": c.stride[:], "pad": c.pad[:], "dilation": c.dilation[:], "groups": c.groups, "bias": c.bias, "relu": c.relu}
}

func (c convCase) out() (oh, ow int) {
	oh = (c.h+c.pad[0]+c.pad[2]-(c.kh-1)*c.dilation[0]-1)/c.stride[0] + 1
	ow = (c.w+c.pad[1]+c.pad[3]-(c.kw-1)*c.dilation[1]-1)/c.stride[1] + 1
	return
}

func convCases(n int, seed uint64) []convCase {
	one := [2]int{1, 1}
	list := []convCase{
		{2, 3, 23, 23, 64, 7, 7, 1, [2]int{2, 2}, one, [4]int{3, 3, 3, 3}, false, false},
		{2, 64, 9, 9, 32, 1, 1, 1, one, one, [4]int{}, true, false},
		{1, 32, 9, 8, 48, 3, 3, 1, [2]int{2, 2}, one, [4]int{1, 1, 1, 1}, true, true},
		{2, 32, 8, 8, 32, 3, 3, 32, one, one, [4]int{1, 1, 1, 1}, false, false},           // depthwise
		{2, 64, 8, 8, 64, 3, 3, 4, one, one, [4]int{1, 1, 1, 1}, false, true},             // groups
		{1, 16, 12, 12, 16, 3, 3, 1, one, [2]int{2, 2}, [4]int{2, 2, 2, 2}, false, false}, // dilation
		{2, 5, 7, 6, 7, 3, 2, 1, one, one, [4]int{1, 0, 0, 1}, true, false},               // odd everything
	}
	list = append(list, convCase{2, 32, 9, 8, 24, 1, 1, 1, [2]int{2, 2}, one, [4]int{}, false, false},
		convCase{2, 32, 6, 8, 24, 1, 1, 1, [2]int{2, 2}, one, [4]int{}, false, false},
		convCase{3, 20, 7, 9, 33, 1, 1, 1, [2]int{1, 3}, one, [4]int{}, false, false}) // pointwise with strides that leave pixels over
	list = append(list, convCase{1, 256, 5, 6, 272, 3, 2, 1, [2]int{2, 1}, [2]int{1, 2}, [4]int{1, 0, 2, 1}, false, false},
		convCase{2, 256, 4, 4, 256, 3, 3, 1, one, one, [4]int{1, 1, 1, 1}, false, false}) // columns
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(v ...int) int { return v[r.IntN(len(v))] }
	for len(list) < n {
		c := convCase{n: pick(1, 2, 3), c: pick(1, 3, 8, 16, 24, 32), h: 5 + r.IntN(8), w: 5 + r.IntN(8), o: pick(1, 10, 16, 32, 40), groups: 1,
			kh: pick(1, 2, 3, 5), kw: pick(1, 3), stride: [2]int{pick(1, 1, 2), pick(1, 1, 2)}, dilation: [2]int{pick(1, 1, 2), 1},
			bias: pick(0, 1) == 1, relu: pick(0, 0, 1) == 1}
		for i := range 4 {
			c.pad[i] = r.IntN([]int{c.kh, c.kw}[i%2])
		}
		if c.c%2 == 0 && c.o%2 == 0 && pick(0, 0, 1) == 1 {
			c.groups = 2
		}
		if oh, ow := c.out(); (c.kh-1)*c.dilation[0] < c.h && oh > 0 && ow > 0 {
			list = append(list, c)
		}
	}
	return list
}

// ops are the three ops of a case, with inputs, and the number of terms in a sum of each output.
func (c convCase) ops(t npu.DType) []npu.Op {
	oh, ow := c.out()
	any := func(t npu.DType, s ...int) npu.Desc { return npu.D(t, s...).With(npu.Any) }
	x, w, y := any(t, c.n, c.c, c.h, c.w), any(t, c.o, c.c/c.groups, c.kh, c.kw), any(t, c.n, c.o, oh, ow)
	b, dw := npu.D(npu.F32, c.o), any(npu.F32, c.o, c.c/c.groups, c.kh, c.kw)
	fwd := npu.Op{Kind: npu.Conv2D, Attrs: c.attrs(), In: []npu.Desc{x, w}, Out: []npu.Desc{y}}
	a := c.attrs()
	a["relu"] = false
	ad, aw := a.Clone(), a.Clone()
	ad["x_shape"], aw["w_shape"] = []int(x.Shape), []int(w.Shape)
	bd := npu.Op{Kind: npu.Conv2DBwdData, Attrs: ad, In: []npu.Desc{y, w}, Out: []npu.Desc{x}}
	bw := npu.Op{Kind: npu.Conv2DBwdWeights, Attrs: aw, In: []npu.Desc{x, y}, Out: []npu.Desc{dw}}
	if c.bias {
		fwd.In = append(fwd.In, b)
		bw.Out = append(bw.Out, b)
	}
	return []npu.Op{fwd, bd, bw}
}

// Bound: products are summed in float32, so the error grows at most with the root of the number of terms (unit variance):
// 1e-6*sqrt(terms) relative to the size of the sum, which is sqrt(terms) itself; bf16 adds the rounding of the result, 2^-8.
func TestConv(t *testing.T) {
	count := 24
	if testing.Short() {
		count = 5
	}
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		for i, c := range convCases(count, 7) {
			for _, dt := range []npu.DType{npu.F32, npu.BF16} {
				for _, op := range c.ops(dt) {
					r := rand.New(rand.NewPCG(uint64(i), 3))
					var in [][]byte
					for _, desc := range op.In {
						in = append(in, tensor(desc, normal(r)))
					}
					k, got := g.run(op, in, nil)
					exp := want(t, op, in)
					for j, desc := range op.Out {
						var terms float64
						if op.Kind != npu.Conv2DBwdWeights {
							terms = float64(op.In[1].Shape.Elems())
						} else {
							terms = float64(op.In[1].Shape.Elems()) / float64(c.o)
						}
						tol := 4e-6
						if desc.DType == npu.BF16 {
							tol = 1.0 / 128
						}
						compare(t, fmt.Sprintf("%s by %s, output %d", op, k.Impl(), j), desc.With(npu.Plain), got[j], exp[j], tol, math.Sqrt(terms))
					}
					if t.Failed() {
						return
					}
				}
			}
		}
	})
}

// The whole of ResNet50 in float32 stays in the layout that was measured to be the fastest, with the library's generated code.
func TestPreferredLayout(t *testing.T) {
	for _, lib := range libraries(t) {
		d := open(t, npu.Options{Extra: map[string]string{"onednn": lib}})
		want := NHWC
		switch {
		case strings.Contains(d.isa, "avx512"):
			want = NChw16c
		case strings.Contains(d.isa, "avx2"):
			want = NChw8c
		}
		for _, c := range resNet50(2) {
			for i, op := range c.ops(npu.F32) {
				if i == 1 && c.c == 3 {
					continue // no step computes it
				}
				got := must(d.Choose(op))(t)
				y := got.Out[0]
				if i > 0 {
					y = got.In[i-1] // dy, after x for the weights
				}
				if y.Layout != want {
					t.Errorf("%s: not in %s", got, want)
				}
				if impl := must(d.Compile(got))(t).Impl(); strings.Contains(impl, "ref") && want != NHWC {
					t.Errorf("%s by %s", got, impl)
				}
			}
		}
	}
}

// Shapes that matter must never be executed by plain loops, of the library or of Go.
func TestConvImplementations(t *testing.T) {
	one := [2]int{1, 1}
	eachDevice(t, func(t *testing.T, d *Device) {
		for _, c := range []convCase{
			{2, 3, 64, 64, 64, 7, 7, 1, [2]int{2, 2}, one, [4]int{3, 3, 3, 3}, false, false},
			{2, 64, 16, 16, 256, 1, 1, 1, one, one, [4]int{}, false, false},
			{2, 128, 16, 16, 128, 3, 3, 1, [2]int{2, 2}, one, [4]int{1, 1, 1, 1}, false, false},
			{2, 256, 14, 14, 512, 1, 1, 1, [2]int{2, 2}, one, [4]int{}, false, false},
			{2, 64, 16, 16, 64, 3, 3, 1, one, one, [4]int{1, 1, 1, 1}, true, true},
		} {
			for _, dt := range []npu.DType{npu.F32, npu.BF16} {
				for i, op := range c.ops(dt) {
					if i == 1 && c.c == 3 {
						continue
					}
					op, err := d.Choose(op)
					if err != nil {
						t.Fatal(err)
					}
					k, err := d.Compile(op)
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%-22s %s", k.Impl(), op)
					if strings.Contains(d.isa, "avx") && (strings.Contains(k.Impl(), "ref") || !strings.HasPrefix(k.Impl(), "dnnl:")) {
						t.Errorf("%s is executed by %s", op, k.Impl())
					}
				}
			}
		}
	})
}
