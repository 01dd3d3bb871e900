package lower

import "slices"

// DType is an aclDataType.
type DType int32

// The element types, with the numbers of aclDataType.
const (
	Float32  DType = 0
	Float16  DType = 1
	Int8     DType = 2
	Int32    DType = 3
	UInt8    DType = 4
	Int64    DType = 9
	Float64  DType = 11
	Bool     DType = 12
	BFloat16 DType = 27
)

// Format is an aclFormat.
type Format int32

// The formats that cross the border to CANN; private formats stay inside of operators.
const (
	NCHW Format = 0 // convolution, pooling and batch norm refuse ND
	ND   Format = 2
)

// Space says whose memory a tensor is in.
type Space uint8

// The spaces of memory.
const (
	In    Space = iota // an input of the op
	Out                // an output of the op
	Temp               // Program.Temps
	Fixed              // Program.Consts
)

// Ref is a piece of memory.
type Ref struct {
	Space Space
	Index int
}

// Tensor is a view of memory, in the terms of aclCreateTensor.
type Tensor struct {
	Base    Ref
	DType   DType
	Dims    []int64
	Strides []int64 // in elements; 0 repeats
	Offset  int64   // of the first element, in elements
	Format  Format
	Storage int64 // elements of DType that the memory at Base has
}

// Scalar is an aclScalar.
type Scalar struct {
	DType DType
	Value float64 // exact for all integers that are used
}

// Elem is an element of an input of f32, as a number that the host must know when the program is launched.
type Elem struct {
	In int
	At int64
}

// Arg is an argument of a call. Code is the code of abi's table and says which of the other fields counts.
type Arg struct {
	Code   string
	Null   bool     // a NULL pointer: an optional tensor, array or output that is absent
	Tensor Tensor   // T To
	List   []Tensor // TL TLo
	Scalar Scalar   // S
	Ints   []int64  // IA
	Floats []float32
	Bools  []bool // BA
	Str    string
	Int    int64   // dt int i8 i64 u64 bool; u64 has the same bits
	Float  float64 // f32 f64
	Host   *Elem   // f32: the argument is this element in each launch, and Float stands for it before
}

// Cond is a condition on how a program is bound: that the memory Mem is (Shared) or is not the memory of one of Others.
type Cond struct {
	Mem    Ref
	Others []Ref
	Shared bool
}

// When is a condition on a launch: that an element is (or, with Not, is not) a number.
type When struct {
	Elem Elem
	Is   float32
	Not  bool
}

// Holds reports whether the condition holds where the element is v.
func (w When) Holds(v float32) bool { return (v == w.Is) != w.Not }

// Call is a call of an operator: aclnn{Op}GetWorkspaceSize with Args, then aclnn{Op}.
type Call struct {
	Op   string
	Args []Arg
	If   *Cond // the call is left out where it does not hold; nil: never
	When *When // a launch leaves the call out where it does not hold; nil: never
}

// OfHost reports whether an argument of the call is known at the launch only.
func (c Call) OfHost() bool {
	return slices.ContainsFunc(c.Args, func(a Arg) bool { return a.Host != nil })
}

// Host lists the inputs whose values the host must know at each launch.
func (p *Program) Host() []int {
	var l []int
	add := func(e *Elem) {
		if !slices.Contains(l, e.In) {
			l = append(l, e.In)
		}
	}
	for _, c := range p.Calls {
		if c.When != nil {
			add(&c.When.Elem)
		}
		for _, a := range c.Args {
			if a.Host != nil {
				add(a.Host)
			}
		}
	}
	return l
}

// TempMem is a temporary of a program. It holds nothing between launches.
type TempMem struct {
	Bytes  int64 // a multiple of 512
	Offset int64 // within the scratch memory of Program.Scratch bytes, a multiple of 512
}

// Const is read-only memory that depends on nothing but its key. A device makes it once and shares it among programs.
type Const struct {
	Key   string
	Bytes int64
	Make  func() []byte // little-endian elements, len = Bytes
}

// Program is an op as calls of operators, to be executed in order on one stream.
type Program struct {
	Kind    string
	Calls   []Call
	Temps   []TempMem
	Scratch int64 // bytes that all temporaries need together; the workspaces of the calls come on top
	Consts  []Const
	// Spare is scratch memory by output, in place of an output that is bound to nil. Without Bytes the output must be bound.
	Spare []TempMem
}

// Size is the size of an element in bytes.
func (t DType) Size() int64 {
	switch t {
	case Float32, Int32:
		return 4
	case Float16, BFloat16:
		return 2
	case Int8, UInt8, Bool:
		return 1
	}
	return 8
}

// IsFloat reports whether t is a floating-point type.
func (t DType) IsFloat() bool { return t == Float32 || t == Float16 || t == BFloat16 || t == Float64 }

var dtypeNames = map[DType]string{
	Float32: "f32", Float16: "f16", Int8: "i8", Int32: "i32", UInt8: "u8", Int64: "i64", Float64: "f64", Bool: "bool", BFloat16: "bf16",
}

// String returns the short name, such as "bf16".
func (t DType) String() string { return dtypeNames[t] }

// Holds reports whether the call belongs to a launch that is bound so that same tells which memory is the same.
func (c Call) Holds(same func(a, b Ref) bool) bool {
	if c.If == nil {
		return true
	}
	for _, o := range c.If.Others {
		if same(c.If.Mem, o) {
			return c.If.Shared
		}
	}
	return !c.If.Shared
}
