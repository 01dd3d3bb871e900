//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// Products are those of the faster instructions, and a measurement that is not clear is followed by a longer one.
func TestProductsOf(t *testing.T) {
	type rates [2]float64
	for _, c := range []struct {
		isa  string
		took []rates // by measurement
		want npu.Products
		runs int
	}{
		{"avx2", nil, npu.WideProducts, 0},
		{"avx512_core", nil, npu.WideProducts, 0},
		{"avx512_core_amx", nil, npu.NativeProducts, 0},
		{"avx512_core_amx_fp16", nil, npu.NativeProducts, 0},
		{"avx512_core_bf16", []rates{{100, 200}}, npu.NativeProducts, 1},
		{"avx512_core_bf16", []rates{{100, 100}}, npu.NativeProducts, 1},
		{"avx512_core_fp16", []rates{{179, 89}}, npu.WideProducts, 1},
		{"avx512_core_fp16", []rates{{100, 59}}, npu.WideProducts, 1},
		{"avx512_core_bf16", []rates{{100, 86}}, npu.NativeProducts, 1},
		{"avx512_core_fp16", []rates{{140, 89}, {178, 88}}, npu.WideProducts, 2},    // f32 was disturbed
		{"avx512_core_fp16", []rates{{140, 89}, {100, 60}}, npu.WideProducts, 2},    // the best of both measurements counts
		{"avx512_core_bf16", []rates{{100, 80}, {100, 200}}, npu.NativeProducts, 2}, // bf16 was
		{"avx512_core_bf16", []rates{{100, 75}, {100, 75}}, npu.NativeProducts, 2},  // no processor is known to be so
		{"avx512_core_bf16", []rates{{100, 65}, {100, 65}}, npu.WideProducts, 2},
		{"avx512_core_bf16", []rates{{100, 0}}, npu.NativeProducts, 1}, // nothing to measure
		{"avx512_core_bf16", []rates{{0, 0}}, npu.NativeProducts, 1},
	} {
		runs := 0
		got, why := productsOf(c.isa, func(turns int) (float64, float64) {
			runs++
			if want := []int{shortTurns, longTurns}[runs-1]; turns != want {
				t.Errorf("measurement %d has %d turns", runs, turns)
			}
			return c.took[runs-1][0], c.took[runs-1][1]
		})
		if got != c.want || runs != c.runs || why == "" {
			t.Errorf("%s %v: %s after %d measurements (%s), want %s after %d", c.isa, c.took, got, runs, why, c.want, c.runs)
		}
	}
}

// The measurement takes a few milliseconds, once, and decides the same each time.
func TestProductsAreStable(t *testing.T) {
	d := open(t, npu.Options{})
	first, why := productsOf(d.isa, kern.Compare)
	for range 20 {
		begin := time.Now()
		got, other := productsOf(d.isa, kern.Compare)
		if got != first {
			t.Errorf("%s (%s), then %s (%s)", first, why, got, other)
		}
		if took := time.Since(begin); took > time.Second { // 2 ms of processor time; a busy machine takes longer
			t.Errorf("measured for %v", took)
		}
	}
}

// Whatever the processor prefers, both ways give the results of package ref, and say what they are.
func TestProductsForced(t *testing.T) {
	for _, lib := range libraries(t) {
		if !open(t, npu.Options{Extra: map[string]string{"onednn": lib}}).hasBF16() {
			t.Skip("this processor has no bf16 instructions")
		}
		impls := map[string][]string{}
		for _, way := range []npu.Products{npu.NativeProducts, npu.WideProducts} {
			for threads := 1; threads <= 2; threads++ {
				d := open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": lib, "bf16": string(way)}})
				if p, fixed := d.Products(); p != way || !fixed || !strings.Contains(d.Info().Detail, "(as asked for)") {
					t.Errorf("%s %v, %q", p, fixed, d.Info().Detail)
				}
				if _, wide := d.Info().Widened[npu.BF16]; wide != (way == npu.WideProducts) {
					t.Errorf("%s: %v", way, d.Info().Widened)
				}
				impls[string(way)] = append(impls[string(way)], runProducts(t, d)...)
			}
		}
		if slices.Equal(impls["native"], impls["f32"]) {
			t.Errorf("both ways are executed by %v", impls)
		}
	}
}

// runProducts compares products of bf16 with package ref, and names their kernels.
func runProducts(t *testing.T, d *Device) (impls []string) {
	g, r := newRig(t, d), rand.New(rand.NewPCG(3, 3))
	x, w, y := npu.D(npu.BF16, 9, 32, 14, 14), npu.D(npu.BF16, 64, 32, 3, 3), npu.D(npu.BF16, 9, 64, 7, 7)
	a := npu.Attrs{"pad": []int{1, 1, 1, 1}, "stride": []int{2, 2}}
	data, weights := a.Clone(), a.Clone()
	data["x_shape"], weights["w_shape"] = []int(x.Shape), []int(w.Shape)
	m, n, dw := npu.D(npu.BF16, 40, 96), npu.D(npu.BF16, 96, 48), w.As(npu.F32)
	for _, op := range []npu.Op{
		{Kind: npu.Conv2D, Attrs: a, In: []npu.Desc{x, w}, Out: []npu.Desc{y}},
		{Kind: npu.Conv2DBwdData, Attrs: data, In: []npu.Desc{y, w}, Out: []npu.Desc{x}},
		{Kind: npu.Conv2DBwdWeights, Attrs: weights, In: []npu.Desc{x, y}, Out: []npu.Desc{dw}},
		{Kind: npu.MatMul, In: []npu.Desc{m, n}, Out: []npu.Desc{npu.D(npu.BF16, 40, 48)}},
		{Kind: npu.MatMul, In: []npu.Desc{m, n}, Out: []npu.Desc{npu.D(npu.F32, 40, 48)}},
	} {
		var in [][]byte
		for _, t := range op.In {
			in = append(in, tensor(t, normal(r)))
		}
		k, got := g.run(op, in, nil)
		impls = append(impls, k.Impl())
		exp := want(t, op, in)
		for j, o := range op.Out {
			compare(t, k.Impl()+" "+op.String(), o, got[j], exp[j], 1.0/128, 4)
		}
	}
	return impls
}

// What was chosen can be changed until kernels exist, and after it for further ones.
func TestUseProducts(t *testing.T) {
	d := open(t, npu.Options{})
	if !d.hasBF16() {
		if p, _ := d.Products(); p != "" {
			t.Errorf("a choice of %q without instructions", p)
		}
		if err := d.UseProducts(npu.NativeProducts); err == nil || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("native: %v", err)
		}
		return
	}
	x := npu.D(npu.BF16, 64, 64)
	op := npu.Op{Kind: npu.MatMul, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
	size, names := map[npu.Products]int64{}, map[string]bool{}
	for range 2 {
		for _, way := range []npu.Products{npu.NativeProducts, npu.WideProducts} {
			if err := d.UseProducts(way); err != nil {
				t.Fatal(err)
			}
			k := must(d.Compile(must(d.Choose(op))(t)))(t)
			if old, ok := size[way]; ok && old != k.Workspace() {
				t.Errorf("%s: a workspace of %d bytes, then %d", way, old, k.Workspace())
			}
			size[way], names[d.Identity()] = k.Workspace(), true
		}
	}
	if size[npu.NativeProducts] >= size[npu.WideProducts] || len(names) != 2 {
		t.Errorf("workspaces %v of %v", size, names)
	}
	for _, bad := range []string{"yes", "bf16", "F32"} {
		_, err := Open(npu.Options{Extra: map[string]string{"bf16": bad}})
		var wrong *npu.OptionError
		if !errors.As(err, &wrong) || wrong.Unknown || !strings.Contains(err.Error(), "auto, native, f32") {
			t.Errorf("bf16=%s: %v", bad, err)
		}
	}
}
