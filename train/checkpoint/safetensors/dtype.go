package safetensors

import "slices"

// DType is the type of an element, spelled as in the file.
type DType string

// The types that this package knows.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// order is the writer's order of types of the same width; any fixed order would do.
var order = []DType{F64, I64, U64, F32, I32, U32, F16, BF16, I16, U16, I8, U8, Bool}

// Size is the size of an element in bytes, 0 for an unknown type.
func (t DType) Size() int64 {
	switch t {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

func (t DType) rank() int { return slices.Index(order, t) }
