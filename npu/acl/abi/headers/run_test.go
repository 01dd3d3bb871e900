package headers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// types are C types of the classes.
var types = map[string]string{"": "void", "i1": "int8_t", "i4": "enum kind", "i8": "int64_t", "u4": "uint32_t", "u8": "uint64_t", "f4": "float", "f8": "double",
	"b": "bool", "p": "struct object *"}

// prototypes declares functions as a vendor might.
func prototypes(l []abi.Function) string {
	var b strings.Builder
	for _, f := range l {
		var args []string
		for i, c := range f.Args {
			t := types[c]
			if n, ok := strings.CutPrefix(c, "s"); ok {
				t = fmt.Sprintf("struct by_value_%s", n)
				fmt.Fprintf(&b, "#ifndef BV%s\n#define BV%s\n%s { char c[%s]; };\n#endif\n", n, n, t, n)
			}
			args = append(args, fmt.Sprintf("%s a%d", t, i))
		}
		fmt.Fprintf(&b, "%s %s(%s); // like %s()\n", types[f.Result], f.Name, strings.Join(args, ", "), f.Name)
	}
	return b.String()
}

// install lays out headers of a toolkit that has the functions of the tables, but for some, and the layouts.
func install(t *testing.T, without ...string) string {
	t.Helper()
	root := t.TempDir()
	has := func(l []abi.Function) []abi.Function {
		return slices.DeleteFunc(slices.Clone(l), func(f abi.Function) bool { return slices.Contains(without, f.Name) })
	}
	const head = "#pragma once\n#include <cstddef>\n#include <cstdint>\n#ifndef KIND\n#define KIND\nenum kind { none };\nstruct object;\n#endif\nextern \"C\" {\n"
	runtime, _ := Values()
	var enum strings.Builder
	for i, v := range runtime {
		if v.Expression[0] == 'A' {
			fmt.Fprintf(&enum, "enum e%d { %s = %d };\n", i, v.Expression, v.Number)
		}
	}
	write := func(file, text string) {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(head+text+"}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("arm-linux/include/acl/acl.h", "struct aclrtUtilizationInfo { int n[4]; void *more; };\n"+enum.String()+prototypes(has(abi.Runtime())))
	write("arm-linux/include/aclnn/acl_meta.h", prototypes(has(abi.Base())))
	write("arm-linux/include/hccl/hccl.h", layouts+prototypes(has(abi.HCCL())))
	for _, o := range abi.Ops() {
		if o.Header != "" {
			name := "opp/built-in/op_impl/ai_core/tbe/op_api/include/aclnnop/aclnn_gt_" + strings.ToLower(o.Name) + ".h"
			write(name, prototypes(has(Phases([]abi.Op{o}))))
		}
	}
	return root
}

const layouts = `
struct HcclRootInfo { char internal[4108]; };
struct HcclSendRecvItem { int type; void *buf; uint64_t count; int dataType; uint32_t remoteRank; };
struct HcclCommConfig {
    char head[24]; uint32_t hcclBufferSize, hcclDeterministic; char hcclCommName[128], hcclUdi[128];
    uint32_t hcclOpExpansionMode, hcclRdmaTrafficClass, hcclRdmaServiceLevel;
};
const uint32_t HCCL_COMM_CONFIG_VERSION = 5, HCCL_COMM_CONFIG_MAGIC_WORD = 0xf0f0f0f0;
enum { HCCL_DATA_TYPE_INT8, HCCL_DATA_TYPE_INT32 = 2, HCCL_DATA_TYPE_FP16, HCCL_DATA_TYPE_FP32, HCCL_DATA_TYPE_INT64, HCCL_DATA_TYPE_UINT8 = 7,
    HCCL_DATA_TYPE_FP64 = 10, HCCL_DATA_TYPE_BFP16 };
enum { HCCL_REDUCE_SUM, HCCL_REDUCE_MAX = 2, HCCL_REDUCE_MIN, HCCL_E_TIMEOUT = 9, HCCL_E_REMOTE = 21 };
`

func compiler(t *testing.T) {
	t.Helper()
	if _, err := Compiler(); err != nil {
		t.Skip(err)
	}
}

func row(t *testing.T, r *Result, name string) Row {
	t.Helper()
	i := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Table == name })
	if i < 0 {
		t.Fatalf("no table %s in %+v", name, r)
	}
	return r.Rows[i]
}

// Headers that declare what the tables say agree; a function that they lack is absent.
func TestEqual(t *testing.T) {
	compiler(t)
	root := install(t, "HcclGroupStart", "aclrtStreamAbort")
	r, err := Run(t.Context(), Options{Roots: Installed(root)})
	if err != nil || !r.OK() {
		t.Fatalf("%v\n%s", err, r.Text())
	}
	withHeader := 0
	for _, o := range abi.Ops() {
		if o.Header != "" {
			withHeader++
		}
	}
	runtime, hccl := Values()
	for name, want := range map[string]int{"runtime": len(abi.Runtime()) - 1, "operator base": len(abi.Base()), "HCCL": len(abi.HCCL()) - 1,
		"operators": 2 * withHeader, "numbers of the runtime": len(runtime), "layouts of HCCL": len(hccl)} {
		if got := row(t, r, name); got.Equal != want {
			t.Errorf("%s: %d equal, want %d: %+v", name, got.Equal, want, got)
		}
	}
	if a := row(t, r, "HCCL").Absent; !slices.Equal(a, []string{"HcclGroupStart"}) {
		t.Errorf("absent: %v", a)
	}
	if !strings.Contains(r.Text(), "33 equal; not declared: HcclGroupStart") {
		t.Error(r.Text())
	}
}

// Every kind of wrong entry is caught, by name.
func TestDifferent(t *testing.T) {
	compiler(t)
	root := install(t)
	change := func(l []abi.Function, name string, f func(*abi.Function)) []abi.Function {
		l = slices.Clone(l)
		i := slices.IndexFunc(l, func(f abi.Function) bool { return f.Name == name })
		l[i].Args = slices.Clone(l[i].Args)
		f(&l[i])
		return l
	}
	for name, table := range map[string]Table{
		"HcclAllReduce":            {"HCCL", change(abi.HCCL(), "HcclAllReduce", func(f *abi.Function) { f.Args[2] = "u4" })},
		"HcclBroadcast":            {"HCCL", change(abi.HCCL(), "HcclBroadcast", func(f *abi.Function) { f.Args = f.Args[:len(f.Args)-1] })},
		"aclrtMalloc":              {"runtime", change(abi.Runtime(), "aclrtMalloc", func(f *abi.Function) { f.Result = "p" })},
		"aclnnMmGetWorkspaceSize":  {"operators", change(Phases(abi.Ops()), "aclnnMmGetWorkspaceSize", func(f *abi.Function) { f.Args[3] = "i4" })},
		"aclnnAddGetWorkspaceSize": {"operators", change(Phases(abi.Ops()), "aclnnAddGetWorkspaceSize", func(f *abi.Function) { f.Args[2] = "f4" })},
	} {
		r, err := Run(t.Context(), Options{Roots: Installed(root), Tables: []Table{table}})
		if err != nil || r.OK() || !slices.Equal(r.Rows[0].Differ, []string{name}) || !strings.Contains(r.Text(), "DIFFERENT: "+name) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
}

// Values that differ are named; so are headers that do not compile.
func TestBrokenHeaders(t *testing.T) {
	compiler(t)
	root := install(t)
	file := filepath.Join(root, "arm-linux/include/hccl/hccl.h")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	save := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(strings.Replace(string(text), "uint32_t hcclBufferSize,", "uint64_t hcclBufferSize; uint32_t", 1))
	r, err := Run(t.Context(), Options{Roots: Installed(root), Tables: []Table{}})
	if err != nil || r.OK() || !slices.Contains(row(t, r, "layouts of HCCL").Differ, "offsetof(HcclCommConfig, hcclDeterministic)") {
		t.Errorf("%v %+v", err, r)
	}
	save(string(text) + "\nthis is not C++;\n")
	r, err = Run(t.Context(), Options{Roots: Installed(root), Tables: []Table{{"HCCL", abi.HCCL()}}})
	if err != nil || r.OK() || r.Rows[0].Error == "" || r.Rows[0].Equal != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

// A machine without headers or with a compiler that cannot run is told apart from one whose tables differ.
func TestNothingToCompare(t *testing.T) {
	r, err := Run(t.Context(), Options{Roots: Installed(t.TempDir())})
	if err != nil || !r.OK() || !strings.Contains(r.Text(), "no headers of CANN are installed") {
		t.Errorf("%v %+v", err, r)
	}
	if _, err := Run(t.Context(), Options{Roots: []string{install(t)}, Compiler: "/nonexistent/c++"}); err == nil {
		t.Error("a compiler that is not there runs")
	}
	if _, err := Source(nil, []abi.Function{{Name: "f", Args: []string{"q9"}}}); err == nil {
		t.Error("an unknown class is accepted")
	}
}
