package nputest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// encode rounds values to a plain tensor of d's type.
func encode(d npu.Desc, v []float64) ([]byte, error) {
	wide := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(wide[8*i:], math.Float64bits(x))
	}
	return convert(wide, npu.F64, d.DType, len(v))
}

// decode is the inverse. Integers of 64 bits lose what float64 cannot hold.
func decode(d npu.Desc, b []byte) ([]float64, error) {
	n := int(d.Shape.Elems())
	wide, err := convert(b, d.DType, npu.F64, n)
	if err != nil {
		return nil, err
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(wide[8*i:]))
	}
	return v, nil
}

func convert(b []byte, from, to npu.DType, n int) ([]byte, error) {
	op := npu.Op{Kind: npu.Convert, In: []npu.Desc{npu.D(from, n)}, Out: []npu.Desc{npu.D(to, n)}}
	out := make([]byte, n*to.Size())
	if err := ref.Run(op, [][]byte{b, out}); err != nil {
		return nil, fmt.Errorf("nputest: %w", err)
	}
	return out, nil
}

// reference runs call i with package ref. data holds the plain bytes of each tensor; the call's results are put there. Results in place of an input
// become tensors of their own.
func (c Case) reference(i int, data [][]byte) error {
	op, call := c.Op(i), c.Calls[i]
	var args [][]byte
	for j, t := range call.In {
		op.In[j].Layout = npu.Plain
		args = append(args, data[t])
	}
	for j, t := range call.Out {
		op.Out[j].Layout = npu.Plain
		out := make([]byte, op.Out[j].PlainBytes())
		copy(out, data[t]) // a result that the call adds to
		for _, p := range call.InPlace {
			if p[0] == j {
				copy(out, data[call.In[p[1]]])
			}
		}
		args = append(args, out)
	}
	if err := ref.Run(op, args); err != nil {
		return err
	}
	for j, t := range call.Out {
		data[t] = args[len(op.In)+j]
	}
	return nil
}

// inputs are the plain bytes of the tensors that have values.
func (c Case) inputs() ([][]byte, error) {
	data := make([][]byte, len(c.Tensors))
	for i, t := range c.Tensors {
		if t.Values == nil {
			continue
		}
		var err error
		if data[i], err = encode(t.Desc, t.Values); err != nil {
			return nil, err
		}
	}
	return data, nil
}
