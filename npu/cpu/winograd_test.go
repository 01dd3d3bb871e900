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

// three is a 3x3 convolution of stride 1.
func three(n, in, out, h, w int, pad [4]int, bias, relu bool) convCase {
	one := [2]int{1, 1}
	return convCase{n, in, h, w, out, 3, 3, 1, one, one, pad, bias, relu}
}

// winogradCases are shapes with tiles that stick out, channels that fill no vector, one image, more threads than tiles, strips and blocks.
func winogradCases(random int) []convCase {
	same := [4]int{1, 1, 1, 1}
	list := []convCase{
		three(1, 16, 16, 4, 4, same, false, false),
		three(2, 32, 48, 7, 7, same, true, true),
		three(1, 1, 1, 1, 1, same, true, true),
		three(1, 5, 7, 9, 6, same, true, false),
		three(2, 3, 17, 10, 5, [4]int{0, 0, 0, 0}, false, true),
		three(3, 33, 20, 5, 11, [4]int{2, 0, 1, 2}, true, true),
		three(1, 64, 48, 56, 44, same, false, false), // several strips
		three(1, 208, 176, 7, 6, same, true, true),   // blocks, the last one narrow
		three(2, 144, 209, 13, 7, same, true, false), // in nhwc
		three(1, 2, 3, 3, 60, [4]int{0, 2, 0, 2}, false, false),
	}
	r := rand.New(rand.NewPCG(11, 1))
	pick := func(v ...int) int { return v[r.IntN(len(v))] }
	for range random {
		pad := [4]int{r.IntN(3), r.IntN(3), r.IntN(3), r.IntN(3)}
		n, in, out := pick(1, 2, 3, 5), pick(1, 7, 16, 31, 48), pick(2, 8, 16, 32, 41)
		list = append(list, three(n, in, out, 3+r.IntN(14), 3+r.IntN(14), pad, pick(0, 1) == 1, pick(0, 1) == 1))
	}
	return list
}

// winogradTolerance is the bound of the error of one result, by algorithm, in units of the root of the number of terms, which is the size of a sum of
// products of values with unit variance.
var winogradTolerance = map[string]float64{npu.Winograd4: 5e-5, npu.Winograd2: 5e-6}

func TestWinograd(t *testing.T) {
	count := 8
	if testing.Short() {
		count = 2
	}
	expected := map[string][][]byte{} // by op: the twin is slow
	eachDevice(t, func(t *testing.T, d *Device) {
		g := newRig(t, d)
		worst := map[string]float64{}
		for i, c := range winogradCases(count) {
			for _, op := range c.ops(npu.F32) {
				r := rand.New(rand.NewPCG(uint64(i), 3))
				var in [][]byte
				for _, desc := range op.In {
					in = append(in, tensor(desc, normal(r)))
				}
				key := fmt.Sprint(i, op)
				if expected[key] == nil {
					expected[key] = want(t, op, in)
				}
				exp := expected[key]
				for _, name := range []string{npu.Winograd4, npu.Winograd2} {
					k, got := g.run(op.WithAlgorithm(name), in, nil)
					if !strings.HasPrefix(k.Impl(), "c:wino_") {
						t.Fatalf("%s is executed by %s", op, k.Impl())
					}
					for j, desc := range op.Out {
						terms := float64(op.In[1].Shape.Elems())
						if op.Kind == npu.Conv2DBwdWeights {
							terms /= float64(c.o)
						} else {
							terms /= float64(desc.Shape[1])
						}
						scale := math.Sqrt(terms)
						compare(t, fmt.Sprintf("%s by %s, output %d", op.WithAlgorithm(name), k.Impl(), j), desc.With(npu.Plain), got[j], exp[j], winogradTolerance[name], scale)
						worst[name] = max(worst[name], largest(desc, got[j], exp[j])/scale/winogradTolerance[name])
					}
					if t.Failed() {
						return
					}
				}
			}
		}
		t.Logf("largest error, of the bound: %v", worst)
	})
}

// largest is the largest difference.
func largest(d npu.Desc, got, want []byte) (m float64) {
	for i := range int(d.Shape.Elems()) {
		m = max(m, math.Abs(get(got, i, d.DType)-get(want, i, d.DType)))
	}
	return m
}
