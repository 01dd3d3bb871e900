//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// If the processor lacks bf16 instructions, or has slow ones (products.go), or the library has no bf16 code for an op, tensors stay bf16 in memory and the
// library computes in float32: inputs are copied to float32, and outputs are rounded.

// inBF16 reports whether an argument of the op is bf16.
func inBF16(op npu.Op) bool {
	for i := range len(op.In) + len(op.Out) {
		if t, _ := arg(op, i); t.DType == npu.BF16 {
			return true
		}
	}
	return false
}

// wideDesc is t in float32, in the same layout.
func wideDesc(t npu.Desc) npu.Desc { return t.As(npu.F32).With(t.Layout) }

// inF32 is the op with float32 in place of bf16.
func inF32(op npu.Op) npu.Op {
	op = op.Clone()
	for _, list := range [][]npu.Desc{op.In, op.Out} {
		for i, t := range list {
			if t.DType == npu.BF16 {
				list[i] = wideDesc(t)
			}
		}
	}
	if op.Attrs.Str("dtype") == npu.BF16.String() {
		op.Attrs = op.Attrs.Clone()
		op.Attrs["dtype"] = npu.F32.String()
	}
	return op
}

// native is m for the types that the processor computes in. Products of bf16 may be float32 all the same.
func native(m maker) maker {
	takes := func(d *Device, op npu.Op) bool {
		return !inBF16(op) || d.nativeBF16() || d.hasBF16() && !products[op.Kind]
	}
	return maker{
		choose: func(d *Device, op npu.Op) (npu.Op, error) {
			if !takes(d, op) {
				return op, errNotMine
			}
			return m.choose(d, op)
		},
		build: func(d *Device, op npu.Op) (body, error) {
			if !takes(d, op) {
				return nil, errNotMine
			}
			return m.build(d, op)
		},
	}
}

// widened executes bf16 ops as m does in float32.
func widened(m maker) maker {
	return maker{
		choose: func(d *Device, op npu.Op) (npu.Op, error) {
			if !inBF16(op) {
				return op, errNotMine
			}
			wide, err := m.choose(d, inF32(op))
			if err != nil {
				return op, err
			}
			for i := range op.In {
				op.In[i].Layout = wide.In[i].Layout
			}
			for i := range op.Out {
				op.Out[i].Layout = wide.Out[i].Layout
			}
			return op, nil
		},
		build: func(d *Device, op npu.Op) (body, error) {
			if !inBF16(op) {
				return nil, errNotMine
			}
			if b, err := d.widenInPieces(op, m); !errors.Is(err, errNotMine) {
				return b, err
			}
			b, err := m.build(d, inF32(op))
			if err != nil {
				return nil, err
			}
			return d.widen(op, b)
		},
	}
}

// widen adds conversions around b, a body of op in float32. All inputs are copied before b runs and outputs are written after it, so arguments may alias.
func (d *Device) widen(op npu.Op, b body) (body, error) {
	seq := &sequence{}
	run := step{body: b}
	var after []step
	for i := range len(op.In) + len(op.Out) {
		t, in := arg(op, i)
		at := place{arg: i}
		if t.DType != npu.BF16 {
			run.args = append(run.args, at)
			continue
		}
		if !in && mayBeNil(op, i-len(op.In)) {
			return nil, fmt.Errorf("%w: output %d is optional", errNotMine, i-len(op.In))
		}
		bytes, err := d.Bytes(t)
		if err != nil {
			return nil, err
		}
		wide, err := d.Bytes(wideDesc(t))
		if err != nil {
			return nil, err
		}
		if wide != 2*bytes {
			return nil, fmt.Errorf("%w: %s has %d bytes, and %d in f32", errNotMine, t, bytes, wide)
		}
		temp := place{arg: -1, off: seq.temp}
		seq.temp += (wide + 63) &^ 63
		run.args = append(run.args, temp)
		if in {
			seq.steps = append(seq.steps, d.convertStep(int(bytes/2), npu.BF16, at, npu.F32, temp))
		} else {
			after = append(after, d.convertStep(int(bytes/2), npu.F32, temp, npu.BF16, at))
		}
	}
	seq.steps = append(append(seq.steps, run), after...)
	return seq, nil
}

// convertStep converts elements from one type to another.
func (d *Device) convertStep(elems int, from npu.DType, a place, to npu.DType, b place) step {
	op := npu.Op{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": to.String()}, In: []npu.Desc{npu.D(from, elems)}, Out: []npu.Desc{npu.D(to, elems)}}
	call, ok := kern.Prepare(op)
	if !ok {
		panic("cpu: no kernel for " + op.String())
	}
	call.ForThreads(d.threads)
	return step{body: kernBody{call}, args: []place{a, b}}
}
