package lower

import (
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/abi"
)

// builder collects the calls of a program. The first error stays.
type builder struct {
	op   npu.Op
	caps Caps
	p    Program
	err  error
	keys map[string]int // constants by key
	cond *Cond          // of the calls that are appended
	when *When          // of the calls that are appended
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// null is an absent argument.
type null struct{}

// call appends a call. Arguments are given in the order of abi's table as Tensor, []Tensor, Scalar, []int64, []float32, []bool, string, int, int64,
// float64, Elem, bool, DType or null{}; each must fit its code.
func (b *builder) call(op string, args ...any) {
	row, ok := abi.Find(op)
	switch {
	case !ok:
		b.fail("aclnn%s is not in the table of operators", op)
		return
	case !b.caps.Has(op):
		b.fail("aclnn%s is not in the installed CANN %v\nhint: install a version that has it", op, b.caps.Version)
		return
	case len(args) != len(row.Args):
		b.fail("aclnn%s takes %d arguments, got %d", op, len(row.Args), len(args))
		return
	}
	c := Call{Op: op, Args: make([]Arg, len(args)), If: b.cond, When: b.when}
	for i, a := range args {
		if c.Args[i], ok = argument(row.Args[i].Code, a); !ok {
			b.fail("aclnn%s: argument %d (%s) is a %T, must be of code %s", op, i, row.Args[i].Name, a, row.Args[i].Code)
			return
		}
	}
	b.p.Calls = append(b.p.Calls, c)
}

// argument makes an Arg of a Go value.
func argument(code string, v any) (Arg, bool) {
	a := Arg{Code: code}
	fits := func(codes ...string) bool { return slices.Contains(codes, code) }
	switch v := v.(type) {
	case null:
		a.Null = true
		return a, fits("T", "To", "IA", "FA", "BA", "S")
	case Tensor:
		a.Tensor = v
		return a, fits("T", "To")
	case []Tensor:
		a.List = v
		return a, fits("TL", "TLo")
	case Scalar:
		a.Scalar = v
		return a, fits("S")
	case []int64:
		a.Ints = v
		return a, fits("IA")
	case []float32:
		a.Floats = v
		return a, fits("FA")
	case []bool:
		a.Bools = v
		return a, fits("BA")
	case string:
		a.Str = v
		return a, fits("str")
	case DType:
		a.Int = int64(v)
		return a, fits("dt")
	case int:
		a.Int = int64(v)
		return a, fits("int", "i8", "i64", "u64")
	case int64:
		a.Int = v
		return a, fits("int", "i8", "i64", "u64")
	case bool:
		if v {
			a.Int = 1
		}
		return a, fits("bool")
	case Elem:
		a.Host, a.Float = &v, 0.5 // any number will do where the calls are only measured
		return a, fits("f32")
	case float64:
		a.Float = v
		return a, fits("f32", "f64")
	}
	return a, false
}

// in is input i as a contiguous tensor.
func (b *builder) in(i int) Tensor { return described(Ref{In, i}, b.op.In[i]) }

// out is output i as a contiguous tensor.
func (b *builder) out(i int) Tensor { return described(Ref{Out, i}, b.op.Out[i]) }

// described is the memory of a tensor. One in Lanes has dimensions 2 (maximum, sum) and 8 (lanes) in addition, first and last.
func described(r Ref, d npu.Desc) Tensor {
	n := dims(d.Shape)
	if d.Layout == Lanes {
		n = append(append([]int64{2}, n...), lanes)
	}
	return tensor(r, TypeOf(d.DType), n...)
}

// hasOut reports whether the op has output i. One that has may still be unwanted when it is bound.
func (b *builder) hasOut(i int) bool { return i < len(b.op.Out) }

// outOr is output i, or a temporary where the op has none.
func (b *builder) outOr(i int, t DType, dims ...int64) Tensor {
	if b.hasOut(i) {
		return b.out(i)
	}
	return b.temp(t, dims...)
}

// temp is a new temporary.
func (b *builder) temp(t DType, dims ...int64) Tensor {
	b.p.Temps = append(b.p.Temps, TempMem{})
	v := tensor(Ref{Temp, len(b.p.Temps) - 1}, t, dims...)
	b.p.Temps[v.Base.Index].Bytes = align(v.Elems() * t.Size())
	return v
}

// align rounds up to whole blocks, with room for vector loads that read beyond the end.
func align(n int64) int64 { return (n + 32 + 511) / 512 * 512 }

// constant is memory that is made once per device.
func (b *builder) constant(key string, t DType, fill func() []byte, dims ...int64) Tensor {
	i, ok := b.keys[key]
	if !ok {
		i = len(b.p.Consts)
		v := tensor(Ref{Fixed, i}, t, dims...)
		b.p.Consts = append(b.p.Consts, Const{Key: key, Bytes: v.Elems() * t.Size(), Make: fill})
		b.keys[key] = i
	}
	return tensor(Ref{Fixed, i}, t, dims...)
}

// TypeOf is the aclDataType of an element type.
func TypeOf(t npu.DType) DType {
	switch t {
	case npu.F32:
		return Float32
	case npu.BF16:
		return BFloat16
	case npu.F16:
		return Float16
	case npu.F64:
		return Float64
	case npu.I32:
		return Int32
	case npu.I64:
		return Int64
	case npu.U8:
		return UInt8
	case npu.I8:
		return Int8
	}
	panic("lower: dtype " + t.String())
}

func dims(s npu.Shape) []int64 {
	d := make([]int64, len(s))
	for i, n := range s {
		d[i] = int64(n)
	}
	return d
}

// unless makes the calls of fn conditional: they are left out where out is bound to the memory of one of ins. then is what happens in that case.
func (b *builder) unless(out Tensor, ins []Tensor, fn, then func()) {
	refs := make([]Ref, len(ins))
	for i, t := range ins {
		refs[i] = t.Base
	}
	b.cond = &Cond{Mem: out.Base, Others: refs}
	fn()
	if then != nil {
		b.cond = &Cond{Mem: out.Base, Others: refs, Shared: true}
		then()
	}
	b.cond = nil
}

// either calls one for launches in which an element of an input is a number, and other for those in which it is not.
func (b *builder) either(e Elem, is float32, one, other func()) {
	b.when = &When{Elem: e, Is: is}
	one()
	b.when = &When{Elem: e, Is: is, Not: true}
	other()
	b.when = nil
}

// apart calls fn to compute out. Where out is bound to the memory of one of ins, fn computes into a temporary, which is then copied: for operators that read
// an input again after they have written to the output.
func (b *builder) apart(out Tensor, ins []Tensor, fn func(dst Tensor)) {
	b.unless(out, ins, func() { fn(out) }, func() {
		t := b.temp(out.DType, out.Dims...)
		t.Format = out.Format
		fn(t)
		b.call("InplaceCopy", out, t)
	})
}

// inherit copies an input to the output that continues it, unless they are the same memory, and returns the output.
func (b *builder) inherit(out, in Tensor) Tensor {
	b.unless(out, []Tensor{in}, func() { b.call("InplaceCopy", out, in) }, nil)
	return out
}

// cast converts src to dst.
func (b *builder) cast(src, dst Tensor) {
	if src.DType == dst.DType {
		b.call("InplaceCopy", dst, src)
		return
	}
	b.call("Cast", src, dst.DType, dst)
}

// as is t with another element type, in a temporary where it has a different one.
func (b *builder) as(t Tensor, d DType) Tensor {
	if t.DType == d {
		return t
	}
	v := b.temp(d, t.Dims...)
	v.Format = t.Format
	b.cast(t, v)
	return v
}

// full is t in f32.
func (b *builder) full(t Tensor) Tensor { return b.as(t, Float32) }

// into calls fn to compute out in f32, in a temporary that is rounded to out where out has another type.
func (b *builder) into(out Tensor, fn func(dst Tensor)) {
	if out.DType == Float32 {
		fn(out)
		return
	}
	t := b.temp(Float32, out.Dims...)
	fn(t)
	b.cast(t, out)
}

// cube is how products of f32 are computed: 0 keeps all bits, 1 allows fewer.
func (b *builder) cube() int {
	if b.caps.HF32 {
		return 1
	}
	return 0
}

// number is a scalar of f32, which every float tensor accepts.
func number(v float64) Scalar { return Scalar{Float32, v} }

// integer is a scalar for integer tensors.
func integer(t DType, v int) Scalar { return Scalar{t, float64(v)} }
