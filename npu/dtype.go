package npu

import "fmt"

// DType is the type of one element of a tensor.
type DType uint8

// The element types. F16 is for devices that compute in it; the host's kernels compute in F32 and BF16.
const (
	Invalid DType = iota
	F32
	BF16
	F16
	F64
	I32
	I64
	U8
	I8
)

var dtypes = [...]struct {
	name string
	size int
}{
	Invalid: {"invalid", 0}, F32: {"f32", 4}, BF16: {"bf16", 2}, F16: {"f16", 2}, F64: {"f64", 8},
	I32: {"i32", 4}, I64: {"i64", 8}, U8: {"u8", 1}, I8: {"i8", 1},
}

// String returns the short name, such as "f32".
func (t DType) String() string {
	if int(t) < len(dtypes) {
		return dtypes[t].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Size is the size of one element in bytes.
func (t DType) Size() int {
	if int(t) < len(dtypes) {
		return dtypes[t].size
	}
	return 0
}

// IsFloat reports whether the type is a floating-point type.
func (t DType) IsFloat() bool { return t == F32 || t == BF16 || t == F16 || t == F64 }

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, error) {
	for i, d := range dtypes {
		if i != int(Invalid) && d.name == s {
			return DType(i), nil
		}
	}
	return Invalid, fmt.Errorf("npu: unknown dtype %q\nhint: use one of f32, bf16, f16, f64, i32, i64, u8, i8", s)
}
