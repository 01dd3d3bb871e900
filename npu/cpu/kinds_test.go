//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
)

// positive fills with values that are variances.
func positive(seed uint64) func(int) float64 {
	r := rand.New(rand.NewPCG(seed, 77))
	return func(int) float64 { return 0.1 + r.Float64() }
}

func constant(v ...float64) func(int) float64 { return func(i int) float64 { return v[i%len(v)] } }

// All kinds work, in the layouts that the device chooses and in those that come in.
func TestKinds(t *testing.T) {
	first := true
	eachDevice(t, func(t *testing.T, d *Device) {
		o := nputest.Options{N: -1}
		if first && !testing.Short() { // libraries and policies differ in what they choose, which the cases that are written down show
			o = nputest.Options{N: 4, Layouts: []npu.Layout{npu.Plain, NHWC, NChw16c, NChw8c}}
		}
		first = false
		nputest.Run(t, d, o)
		if lacking := nputest.Lacking(d); len(lacking) > 0 {
			t.Errorf("lacks %v", lacking)
		}
	})
}

// Batch normalisation and relu keep the layout of their input, whatever the policy is.
func TestLayoutsAreKept(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		for _, kind := range []string{npu.BatchNorm, npu.BatchNormInfer, npu.BatchNormBwd, npu.Relu, npu.ReluBwd} {
			for _, dt := range floatTypes {
				for _, l := range []npu.Layout{NHWC, NChw16c, NChw8c} {
					c := nputest.Cases(kind, dt)[0].In(l) // of 32 channels
					op := must(d.Choose(c.Op(len(c.Calls) - 1)))(t)
					if op.In[0].Layout != l || op.Out[0].Layout != l {
						t.Errorf("%s is not kept: %s", l, op)
					}
				}
			}
		}
	})
}
