package abi

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	for _, c := range []struct {
		what string
		n    int
	}{{"operators", len(Ops())}, {"runtime", len(Runtime())}, {"base", len(Base())}, {"hccl", len(HCCL())}} {
		if want := map[string]int{"operators": 170, "runtime": 71, "base": 25, "hccl": 34}[c.what]; c.n != want {
			t.Errorf("%s: %d entries, want %d", c.what, c.n, want)
		}
	}
	seen := map[string]bool{}
	for _, o := range Ops() {
		if seen[o.Name] {
			t.Errorf("%s is listed twice", o.Name)
		}
		seen[o.Name] = true
		if o.Header != "" && (!strings.Contains(o.Header, "aclnn_") || !strings.HasSuffix(o.Header, ".h")) {
			t.Errorf("%s: header %q", o.Name, o.Header)
		}
	}
	conv, ok := Find("Convolution")
	if !ok || len(conv.Args) != 11 || conv.Args[10] != (Arg{"i8", "cubeMathType"}) || conv.Args[9].Code != "To" {
		t.Errorf("Convolution is %+v", conv)
	}
	if _, ok := Find("Convolutions"); ok {
		t.Error("found an operator that does not exist")
	}
}

func TestBadTables(t *testing.T) {
	for _, table := range []string{"X\taclnn_x.h", "X\taclnn_x.h\tT", "X\taclnn_x.h\tQ self", "X\taclnn_x.h\t"} {
		if _, err := ParseOps(table); err == nil {
			t.Errorf("%q is accepted", table)
		}
	}
	for _, table := range []string{"aclInit", "aclInit i4 q", "aclInit i4 s"} {
		if _, err := ParseFunctions(table); err == nil {
			t.Errorf("%q is accepted", table)
		}
	}
}
