//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func layerNorm(x npu.Desc, add bool) npu.Op {
	n := len(x.Shape) - 1
	w, rows := npu.D(npu.F32, x.Shape[n]), npu.D(npu.F32, x.Shape[:n]...)
	op := npu.Op{Kind: npu.LayerNorm, Attrs: npu.Attrs{"eps": 1e-3, "add": add}, In: []npu.Desc{x, w, w}, Out: []npu.Desc{x, rows, rows}}
	if add {
		op.In, op.Out = append(op.In, x), append(op.Out, x)
	}
	return op
}

func layerNormBwd(x npu.Desc, add bool) npu.Op {
	n := len(x.Shape) - 1
	w, rows := npu.D(npu.F32, x.Shape[n]), npu.D(npu.F32, x.Shape[:n]...)
	op := npu.Op{Kind: npu.LayerNormBwd, Attrs: npu.Attrs{"eps": 1e-3, "add": add}, In: []npu.Desc{x, x, w, rows, rows}, Out: []npu.Desc{x, w, w}}
	if add {
		op.In = append(op.In, x)
	}
	return op
}

func TestLayerNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 1))
	for _, dt := range acts {
		for _, s := range rmsShapes {
			x := npu.D(dt, s...)
			for _, alias := range []map[int]int{nil, {0: 0}} {
				twin{op: layerNorm(x, false), alias: alias}.run(t, r)
			}
			for _, alias := range []map[int]int{nil, {0: 0}, {3: 0}, {3: 3}, {0: 3}, {0: 0, 3: 3}, {0: 3, 3: 0}} {
				twin{op: layerNorm(x, true), alias: alias}.run(t, r)
			}
		}
	}
}

func TestLayerNormBwd(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 1))
	for _, dt := range acts {
		for _, s := range rmsShapes {
			x := npu.D(dt, s...)
			rstd := [][]byte{nil, nil, nil, nil, positive(int(x.Shape[:len(s)-1].Elems()))}
			for _, alias := range []map[int]int{nil, {0: 0}} {
				twin{op: layerNormBwd(x, false), in: rstd, alias: alias}.run(t, r)
			}
			for _, alias := range []map[int]int{nil, {0: 0}, {0: 5}} {
				twin{op: layerNormBwd(x, true), in: rstd, alias: alias}.run(t, r)
			}
		}
	}
}

// TestGelu: whole tensors, and values by themselves, lest the largest hide the others: a negative one is small.
func TestGelu(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 1))
	for _, form := range []string{"none", "tanh"} {
		a := npu.Attrs{"approximate": form}
		ops := func(x npu.Desc) (fwd, bwd npu.Op) {
			return npu.Op{Kind: npu.Gelu, Attrs: a, In: []npu.Desc{x}, Out: []npu.Desc{x}},
				npu.Op{Kind: npu.GeluBwd, Attrs: a, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
		}
		for _, dt := range acts {
			for _, s := range [][]int{{1}, {37}, {3, 1000}, {2, 5, 7, 9}} {
				fwd, bwd := ops(npu.D(dt, s...))
				for _, alias := range []map[int]int{nil, {0: 0}} {
					twin{op: fwd, alias: alias}.run(t, r)
				}
				for _, alias := range []map[int]int{nil, {0: 0}, {0: 1}} {
					twin{op: bwd, alias: alias}.run(t, r)
				}
			}
		}
		fwd, bwd := ops(npu.D(npu.F32, 1))
		for _, x := range []float64{0, 1e-30, -1e-30, 0.1, -0.1, 1, -1, 2.5, -2.5, -3.7, 5, -5, -6, 9, 14, -14, 30, -30, 1e20, -1e20, 3e38, -3e38, math.NaN()} {
			v := make([]byte, 4)
			put(v, 0, npu.F32, x)
			tol := 2e-6
			if x < -4 { // the rounding of x² in the exponent; tanh's form cancels 1-p there
				tol = 2e-5
			}
			twin{op: fwd, in: [][]byte{v}, tol: tol}.run(t, r)
			twin{op: bwd, in: [][]byte{nil, v}, tol: tol}.run(t, r)
		}
	}
}
