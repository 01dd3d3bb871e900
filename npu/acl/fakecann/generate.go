package fakecann

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

//go:embed src/dcmi.sig
var dcmiTable string

// library is a shared object that forwards to libfakecann.so.
type library struct {
	name      string // "ascendcl"
	functions []abi.Function
	ops       []abi.Op
	needs     []string
}

// newer are symbols that CANN 8.1 does not have.
var newer = []string{"HcclGroupStart", "HcclGroupEnd", "DropoutGenMaskV2Tensor"}

// transformer and math are the operators of these libraries of CANN 9; the rest is in nn.
var transformer = []string{"FlashAttention", "Rotary", "ApplyRotary", "Moe"}

var nn = []string{
	"Convolution", "BatchNorm", "Relu", "InplaceRelu", "Threshold", "MaxPool", "AvgPool", "AdaptiveAvgPool", "Mm", "Matmul", "BatchMatMul", "Addmm",
	"InplaceAddmm", "Baddbmm", "Gelu", "Silu", "Swi", "Softmax", "LogSoftmax", "ScaledMasked", "RmsNorm", "AddRmsNorm", "LayerNorm", "Embedding", "CrossEntropy",
	"NLL", "Gather", "Scatter", "InplaceScatter", "Index", "ApplyAdam", "Foreach", "DropoutDoMask", "Sigmoid",
}

func begins(name string, with []string) bool {
	return slices.ContainsFunc(with, func(p string) bool { return strings.HasPrefix(name, p) })
}

// libraries says which library of a version exports what.
func libraries(version string, without []string) []library {
	dcmi, err := abi.ParseFunctions(dcmiTable)
	if err != nil {
		panic(err) // the table is part of the program
	}
	absent := slices.Clone(without)
	if version == "8.1" {
		absent = append(absent, newer...)
	}
	gone := func(name string) bool { return slices.Contains(absent, name) }
	functions := func(l []abi.Function) []abi.Function {
		return slices.DeleteFunc(slices.Clone(l), func(f abi.Function) bool { return gone(f.Name) })
	}
	ops := slices.DeleteFunc(slices.Clone(abi.Ops()), func(o abi.Op) bool { return gone(o.Name) || gone("aclnn"+o.Name) })
	l := []library{
		{name: "ascendcl", functions: functions(abi.Runtime())},
		{name: "nnopbase", functions: functions(abi.Base())},
		{name: "dcmi", functions: functions(dcmi)},
	}
	hccl := functions(abi.HCCL())
	if version == "8.1" {
		return append(l, library{name: "opapi", ops: ops}, library{name: "hccl", functions: hccl})
	}
	part := map[string][]abi.Op{}
	for _, o := range ops {
		where := "math"
		if begins(o.Name, transformer) {
			where = "transformer"
		} else if begins(o.Name, nn) {
			where = "nn"
		}
		part[where] = append(part[where], o)
	}
	for _, p := range []string{"math", "nn", "transformer"} {
		l = append(l, library{name: "opapi_" + p, ops: part[p]})
	}
	var manage, collect []abi.Function
	for _, f := range hccl {
		if begins(f.Name, []string{"HcclComm", "HcclGet", "HcclSet", "HcclCreate", "HcclGroup"}) {
			manage = append(manage, f)
		} else {
			collect = append(collect, f)
		}
	}
	return append(l, library{name: "acl_rt", functions: functions(abi.Runtime())}, library{name: "hcomm", functions: manage},
		library{name: "hccl", functions: collect, needs: []string{"hcomm"}})
}

// ctypes are the C types of classes of functions.
var ctypes = map[string]string{
	"": "void", "i1": "int8_t", "i4": "int32_t", "i8": "int64_t", "u4": "uint32_t", "u8": "uint64_t", "f4": "float", "f8": "double", "b": "bool", "p": "void *",
}

func ctype(class string) string {
	if c, ok := ctypes[class]; ok {
		return c
	}
	return "struct fk_" + class
}

func parameters(f abi.Function) string {
	if len(f.Args) == 0 {
		return "void"
	}
	l := make([]string, len(f.Args))
	for i, a := range f.Args {
		l[i] = fmt.Sprintf("%s a%d", ctype(a), i)
	}
	return strings.Join(l, ", ")
}

// functions lists all functions: the index of one is its number in the fake's counters. The two phases of operator i follow behind them.
func functions() []abi.Function {
	dcmi, err := abi.ParseFunctions(dcmiTable)
	if err != nil {
		panic(err)
	}
	return slices.Concat(abi.Runtime(), abi.Base(), abi.HCCL(), dcmi)
}

// header declares what the implementation defines: f_NAME for each function.
func header() string {
	var b strings.Builder
	fs := functions()
	fmt.Fprintf(&b, "// Generated from the table of signatures.\n#ifndef FK_EXPORTS_H\n#define FK_EXPORTS_H\n#include <stdbool.h>\n#include <stdint.h>\n")
	fmt.Fprintf(&b, "struct fk_s4 { int32_t v; };\nenum { FK_FUNCTIONS = %d, FK_OPS = %d };\nenum {\n", len(fs), len(abi.Ops()))
	for _, f := range fs {
		fmt.Fprintf(&b, "\tFN_%s,\n", f.Name)
	}
	b.WriteString("};\n#pragma GCC visibility push(default)\n")
	for _, f := range fs {
		fmt.Fprintf(&b, "%s f_%s(%s);\n", ctype(f.Result), f.Name, parameters(f))
	}
	b.WriteString("#pragma GCC visibility pop\n#endif\n")
	return b.String()
}

// table is the table of functions and operators of the implementation.
func table() string {
	var b strings.Builder
	b.WriteString("// Generated from the table of signatures.\n#include \"rt.h\"\n\nconst char *const fk_function_names[FK_FUNCTIONS] = {\n")
	for _, f := range functions() {
		fmt.Fprintf(&b, "\t%q,\n", f.Name)
	}
	b.WriteString("};\n\n")
	for _, o := range abi.Ops() {
		fmt.Fprintf(&b, "extern const fop fop_%s __attribute__((weak));\n", o.Name)
	}
	b.WriteString("\nconst fk_desc fk_ops[FK_OPS] = {\n")
	for _, o := range abi.Ops() {
		codes, names := make([]string, len(o.Args)), make([]string, len(o.Args))
		for i, a := range o.Args {
			codes[i], names[i] = "C_"+a.Code, fmt.Sprintf("%q", a.Name)
		}
		fmt.Fprintf(&b, "\t{%q, &fop_%s, %d, {%s}, {%s}},\n", o.Name, o.Name, len(o.Args), strings.Join(codes, ", "), strings.Join(names, ", "))
	}
	b.WriteString("};\n")
	return b.String()
}

// exports is the source of a forwarding library.
func exports(l library, version string) string {
	var b strings.Builder
	b.WriteString("// Generated from the table of signatures.\n#include \"fake.h\"\n#include \"exports.h\"\n#include \"entry.h\"\n\n")
	b.WriteString("#define EXPORT __attribute__((visibility(\"default\")))\n\n")
	fmt.Fprintf(&b, "__attribute__((constructor)) static void loaded(void) { fk_loaded(%s); }\n\n", strings.ReplaceAll(version, ".", ""))
	for _, f := range l.functions {
		function(&b, f)
	}
	index := map[string]int{}
	for i, o := range abi.Ops() {
		index[o.Name] = i
	}
	for _, o := range l.ops {
		operator(&b, o, index[o.Name])
	}
	return b.String()
}

func function(b *strings.Builder, f abi.Function) {
	args := make([]string, len(f.Args))
	for i := range f.Args {
		args[i] = fmt.Sprintf("a%d", i)
	}
	t := ctype(f.Result)
	fmt.Fprintf(b, "EXPORT %s %s(%s);\nEXPORT %s %s(%s) {\n", t, f.Name, parameters(f), t, f.Name, parameters(f))
	fmt.Fprintf(b, "\tint32_t code = fk_enter(FN_%s);\n", f.Name)
	failed := "(" + t + ")code"
	if f.Result == "p" {
		failed = "NULL"
	}
	fmt.Fprintf(b, "\t%s r = code ? %s : f_%s(%s);\n\tfk_leave(FN_%s);\n\treturn r;\n}\n\n", t, failed, f.Name, strings.Join(args, ", "), f.Name)
}

func operator(b *strings.Builder, o abi.Op, i int) {
	var params, pack []string
	for j, a := range o.Args {
		field := "i"
		switch a.Code {
		case "T", "To", "S", "IA", "FA", "BA", "TL", "TLo", "SL", "str":
			field = "p"
		case "f32", "f64":
			field = "f"
		}
		t := abi.Codes[a.Code]
		if field == "p" {
			t = "const void *"
		}
		params = append(params, fmt.Sprintf("%s a%d", t, j))
		cast := ""
		if a.Code == "u64" {
			cast = "(int64_t)"
		}
		pack = append(pack, fmt.Sprintf("{.%s = %sa%d}", field, cast, j))
	}
	one := fmt.Sprintf("int32_t aclnn%sGetWorkspaceSize(%s, uint64_t *bytes, void **executor)", o.Name, strings.Join(params, ", "))
	fmt.Fprintf(b, "EXPORT %s;\nEXPORT %s {\n\tfk_raw raw[] = {%s};\n", one, one, strings.Join(pack, ", "))
	body := "\tint32_t code = fk_enter(FK_FUNCTIONS + %d);\n\tif (!code) code = %s;\n\tfk_leave(FK_FUNCTIONS + %[1]d);\n\treturn code;\n}\n\n"
	fmt.Fprintf(b, body, 2*i, fmt.Sprintf("fk_phase1(%d, raw, bytes, executor)", i))
	two := fmt.Sprintf("int32_t aclnn%s(void *workspace, uint64_t bytes, void *executor, void *stream)", o.Name)
	fmt.Fprintf(b, "EXPORT %s;\nEXPORT %s {\n", two, two)
	fmt.Fprintf(b, body, 2*i+1, fmt.Sprintf("fk_phase2(%d, workspace, bytes, executor, stream)", i))
}
