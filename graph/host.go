package graph

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// hostCall runs a built-in op's own code on copies of its inputs. Slow, but it is what the user asked for.
func hostCall(o gorgonia.Op, in []npu.Desc, out npu.Desc) func(in, out [][]byte) error {
	return func(src, dst [][]byte) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("graph: host op %s: %v", o, p)
			}
		}()
		vals := make([]gorgonia.Value, len(in))
		for i, d := range in {
			if vals[i], err = toValue(d, src[i]); err != nil {
				return fmt.Errorf("graph: host op %s: input %d: %w", o, i, err)
			}
		}
		v, err := o.Do(vals...)
		if err != nil {
			return fmt.Errorf("graph: host op %s: %w", o, err)
		}
		if err := fromValue(v, out, dst[0]); err != nil {
			return fmt.Errorf("graph: host op %s: %w", o, err)
		}
		return nil
	}
}

// hostable says whether the host fallback can carry a dtype.
func hostable(t npu.DType) bool {
	return t == npu.F32 || t == npu.F64 || t == npu.I32 || t == npu.I64
}

func toValue(d npu.Desc, b []byte) (gorgonia.Value, error) {
	n := int(d.Shape.Elems())
	if len(b) < n*d.DType.Size() {
		return nil, fmt.Errorf("%d bytes for %s", len(b), d)
	}
	var data any
	switch d.DType {
	case npu.F32:
		s := decode(n, func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) })
		if data = s; len(d.Shape) == 0 {
			return gorgonia.NewF32(s[0]), nil
		}
	case npu.F64:
		s := decode(n, func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) })
		if data = s; len(d.Shape) == 0 {
			return gorgonia.NewF64(s[0]), nil
		}
	case npu.I32:
		s := decode(n, func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[4*i:])) })
		if data = s; len(d.Shape) == 0 {
			return gorgonia.NewI32(s[0]), nil
		}
	case npu.I64:
		s := decode(n, func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) })
		if data = s; len(d.Shape) == 0 {
			return gorgonia.NewI64(s[0]), nil
		}
	default:
		return nil, fmt.Errorf("host ops do not support %s", d.DType)
	}
	return tensor.New(tensor.WithShape(d.Shape...), tensor.WithBacking(data)), nil
}

func decode[T any](n int, at func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = at(i)
	}
	return s
}

// fromValue writes a result in the plain order. A view is materialised first; its data is not in order.
func fromValue(v gorgonia.Value, d npu.Desc, b []byte) error {
	if t, ok := v.(*tensor.Dense); ok && (t.RequiresIterator() || !t.DataOrder().IsContiguous() || t.DataOrder().IsTransposed()) {
		v = t.Materialize().(*tensor.Dense)
	}
	if int64(v.Shape().TotalSize()) != d.Shape.Elems() {
		return fmt.Errorf("result has the shape %v, want %v", v.Shape(), d.Shape)
	}
	if int64(len(b)) < d.PlainBytes() {
		return fmt.Errorf("%d bytes for %s", len(b), d)
	}
	switch x := v.Data().(type) {
	case float32:
		return put(b, d, npu.F32, []float32{x})
	case []float32:
		return put(b, d, npu.F32, x)
	case float64:
		return put(b, d, npu.F64, []float64{x})
	case []float64:
		return put(b, d, npu.F64, x)
	case int32:
		return put(b, d, npu.I32, []int32{x})
	case []int32:
		return put(b, d, npu.I32, x)
	case int64:
		return put(b, d, npu.I64, []int64{x})
	case []int64:
		return put(b, d, npu.I64, x)
	case int:
		return put(b, d, npu.I64, []int64{int64(x)})
	case []int:
		return put(b, d, npu.I64, decode(len(x), func(i int) int64 { return int64(x[i]) }))
	}
	return fmt.Errorf("result is %T", v.Data())
}

func put[T any](b []byte, d npu.Desc, t npu.DType, x []T) error {
	if d.DType != t {
		return fmt.Errorf("result is %s, want %s", t, d.DType)
	}
	n, err := binary.Encode(b, binary.LittleEndian, x)
	if err == nil && int64(n) != d.PlainBytes() {
		err = fmt.Errorf("result has %d bytes, want %d", n, d.PlainBytes())
	}
	return err
}
