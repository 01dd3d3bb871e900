package abi

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed ops.tsv
var opsTable string

//go:embed acl.sig
var aclTable string

//go:embed nnopbase.sig
var nnopbaseTable string

//go:embed hccl.sig
var hcclTable string

// Op is an operator, with the arguments of its first phase.
type Op struct {
	Name   string // "Convolution": the functions are aclnnConvolutionGetWorkspaceSize and aclnnConvolution
	Header string // of CANN 8.1.RC1; "" if it has none
	Args   []Arg
}

// Arg is an argument of an operator.
type Arg struct {
	Code string // see the package's documentation
	Name string
}

// Function is a C function of the runtime, of nnopbase or of HCCL.
type Function struct {
	Name   string
	Result string   // class of the result; "" = void
	Args   []string // classes of the arguments
}

// Codes are the codes of arguments of operators, with their C types.
var Codes = map[string]string{
	"T": "const aclTensor*", "To": "aclTensor*", "S": "const aclScalar*", "IA": "const aclIntArray*", "FA": "const aclFloatArray*",
	"BA": "const aclBoolArray*", "TL": "const aclTensorList*", "TLo": "aclTensorList*", "SL": "const aclScalarList*", "str": "char*",
	"dt": "int", "int": "int", "i8": "int8_t", "i64": "int64_t", "u64": "uint64_t", "f32": "float", "f64": "double", "bool": "bool",
}

var ops = sync.OnceValue(func() []Op {
	l, err := ParseOps(opsTable)
	if err != nil {
		panic(err) // the table is part of the program
	}
	return l
})

// Ops lists the operators in the table's order. The slice must not be changed.
func Ops() []Op { return ops() }

var byName = sync.OnceValue(func() map[string]*Op {
	m := map[string]*Op{}
	for i := range ops() {
		m[ops()[i].Name] = &ops()[i]
	}
	return m
})

// Find returns an operator by name.
func Find(name string) (*Op, bool) {
	o, ok := byName()[name]
	return o, ok
}

// ParseOps reads a table of operators in the form of ops.tsv.
func ParseOps(table string) ([]Op, error) {
	var l []Op
	for i, line := range strings.Split(table, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return nil, fmt.Errorf("abi: operators, line %d: %d columns, want 3", i+1, len(f))
		}
		o := Op{Name: f[0], Header: f[1]}
		if o.Header == "-" {
			o.Header = ""
		}
		for _, a := range strings.Split(f[2], ", ") {
			code, name, ok := strings.Cut(a, " ")
			if _, known := Codes[code]; !ok || !known {
				return nil, fmt.Errorf("abi: operators, line %d: %s has the argument %q; want a known code and a name", i+1, o.Name, a)
			}
			o.Args = append(o.Args, Arg{code, name})
		}
		l = append(l, o)
	}
	return l, nil
}

// Runtime lists the functions of libascendcl.
func Runtime() []Function { return parsed(aclTable) }

// Base lists the functions of libnnopbase: tensors, scalars, arrays, lists and executors.
func Base() []Function { return parsed(nnopbaseTable) }

// HCCL lists the functions of libhccl.
func HCCL() []Function { return parsed(hcclTable) }

func parsed(table string) []Function {
	l, err := ParseFunctions(table)
	if err != nil {
		panic(err) // the table is part of the program
	}
	return l
}

// classes of arguments; sN is checked apart.
var classes = []string{"i1", "i4", "i8", "u4", "u8", "f4", "f8", "b", "p"}

// ParseFunctions reads a table of functions in the form of acl.sig. The class v is a result of void.
func ParseFunctions(table string) ([]Function, error) {
	var l []Function
	for i, line := range strings.Split(table, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			return nil, fmt.Errorf("abi: functions, line %d: %q has no result", i+1, line)
		}
		fn := Function{Name: f[0], Result: f[1], Args: f[2:]}
		if fn.Result == "v" {
			fn.Result = ""
		}
		for _, c := range f[2:] {
			var n int
			if _, err := fmt.Sscanf(c, "s%d", &n); err != nil && !slices.Contains(classes, c) {
				return nil, fmt.Errorf("abi: functions, line %d: %s has an argument of class %q", i+1, fn.Name, c)
			}
		}
		l = append(l, fn)
	}
	return l, nil
}
