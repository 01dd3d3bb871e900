//go:build cgo && linux

package acl

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/acltest"
	"github.com/gotrain/gotrain/npu/acl/lower"
	"github.com/gotrain/gotrain/npu/nputest"
)

// openAs opens the fake with another SoC.
func openAs(t *testing.T, soc string, extra ...string) *Device {
	t.Helper()
	acltest.Use(t).Set("SOC", soc)
	return openOn(t, extra...)
}

// suite are the options for the fake, with the slack that the lowering asks for.
func suite(d *Device) nputest.Options {
	return nputest.Options{Skip: ownBits, Bound: func(op npu.Op, out int) float64 { return lower.Slack(op, out, d.caps) }}
}

// checkKinds runs the cases of some kinds.
func checkKinds(t *testing.T, d *Device, kinds ...string) {
	t.Helper()
	for _, k := range kinds {
		for _, dt := range []npu.DType{npu.F32, npu.BF16, npu.F16} {
			all, err := nputest.Check(ctx, d, nputest.Cases(k, dt), suite(d))
			must(t, err)
			passed := 0
			for _, r := range all {
				switch r.Status {
				case nputest.Failed:
					t.Error(r)
				case nputest.Passed:
					passed++
				}
			}
			if passed == 0 {
				t.Errorf("%s %s: no case was run", k, dt)
			}
		}
	}
}

// TestTilesOfLogits: linear cross-entropy in several tiles, the last of them smaller.
func TestTilesOfLogits(t *testing.T) {
	d := openAs(t, "A2")
	d.caps.Logits = 4 * 100 * 4
	checkKinds(t, d, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad)
}

// TestRopeWithoutOperator: composed of products and sums.
func TestRopeWithoutOperator(t *testing.T) {
	d := openAs(t, "A2")
	has := d.caps.Symbols
	d.caps.Symbols = func(op string) bool { return op != "RotaryPositionEmbedding" && has(op) }
	checkKinds(t, d, npu.Rope)
}

// TestRoundedProducts: without the option exact_dw, 8.1 rounds f32 results of 16-bit operands, logits among them, within the slack.
func TestRoundedProducts(t *testing.T) {
	d := openAs(t, "A3")
	checkKinds(t, d, npu.MatMul, npu.LinearCrossEntropy, npu.LinearCrossEntropyBwd, npu.LinearCrossEntropyGrad, npu.BatchNormBwd)
}

// TestSavedStatistics950: what batchnorm saves there is 1/√(variance+eps), in the contract's own form.
func TestSavedStatistics950(t *testing.T) {
	d := openAs(t, "950", "experimental", "true")
	checkKinds(t, d, npu.BatchNorm, npu.BatchNormBwd)
	x, v := npu.D(npu.F32, 4, 3, 2, 2), npu.D(npu.F32, 3)
	op, err := d.Choose(npu.Op{Kind: npu.BatchNorm, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}})
	must(t, err)
	if op.Out[2].Layout != npu.Plain {
		t.Errorf("rstd has the layout %q", op.Out[2].Layout)
	}
}

// f32s reads floats from the device.
func f32s(t *testing.T, s *stream, p npu.Ptr, n int) []float32 {
	t.Helper()
	b := make([]byte, 4*n)
	must(t, s.CopyOut(b, p), s.Sync(ctx))
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func f32le(v ...float32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// execute runs an op once and returns its outputs' memory.
func execute(t *testing.T, d *Device, s *stream, op npu.Op, in ...[]byte) []npu.Ptr {
	t.Helper()
	op, err := d.Choose(op)
	must(t, err)
	k, err := d.Compile(op)
	must(t, err)
	var args []npu.Ptr
	for _, b := range in {
		p := alloc(t, d, int64(len(b)))
		must(t, s.CopyIn(p, b))
		args = append(args, p)
	}
	for _, o := range op.Out {
		n, err := d.Bytes(o)
		must(t, err)
		args = append(args, alloc(t, d, n))
	}
	l, err := k.Bind(args, alloc(t, d, max(1, k.Workspace())))
	must(t, err)
	must(t, s.Run([]npu.Launch{l}), s.Sync(ctx), k.Close())
	return args[len(in):]
}

// TestLabelOutsideOfTheClasses: the loss is NaN, and the run ends; nothing else is touched.
func TestLabelOutsideOfTheClasses(t *testing.T) {
	d := openAs(t, "A2")
	s := newStream(t, d, "compute")
	one := npu.D(npu.F32)
	for _, label := range []int32{3, -1, math.MaxInt32} {
		labels := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0), uint32(label))
		op := npu.Op{Kind: npu.CrossEntropy, Attrs: npu.Attrs{"ignore_index": -100}, In: []npu.Desc{npu.D(npu.F32, 2, 3), npu.D(npu.I32, 2)},
			Out: []npu.Desc{one, one, npu.D(npu.F32, 2)}}
		out := execute(t, d, s, op, f32le(1, 2, 3, 4, 5, 6), labels)
		if loss := f32s(t, s, out[0], 1)[0]; loss == loss {
			t.Errorf("label %d: the loss is %g", label, loss)
		}
	}
}
