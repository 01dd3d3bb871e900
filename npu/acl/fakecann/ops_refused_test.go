package fakecann

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

// edit changes one thing of a case: "soc=0", or an argument's field, "2.d=i32", "0[1].s=2,3", "4=null".
func (c *opCase) edit(t *testing.T, what string) {
	t.Helper()
	key, value, ok := strings.Cut(what, "=")
	if !ok {
		t.Fatalf("edit %q", what)
	}
	list := func() (l []number) {
		for _, s := range strings.Split(value, ",") {
			if s == "" {
				continue
			}
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatalf("edit %q: %v", what, err)
			}
			l = append(l, number(f))
		}
		return l
	}
	switch key {
	case "soc":
		c.Soc = int(list()[0])
		return
	case "cann":
		c.Cann = int(list()[0])
		return
	}
	number, field, _ := strings.Cut(key, ".")
	number, item, inList := strings.Cut(strings.TrimSuffix(number, "]"), "[")
	i, err := strconv.Atoi(number)
	if err != nil || i >= len(c.Args) {
		t.Fatalf("edit %q of %s, which has %d arguments", what, c.Op, len(c.Args))
	}
	a := &c.Args[i]
	if inList {
		j, _ := strconv.Atoi(item)
		a.List = slices.Clone(a.List)
		a = &a.List[j]
	}
	switch field {
	case "":
		*a = opArg{Kind: "N"}
	case "d":
		a.DType = value
		if a.Kind == "T" {
			a.Values = nil
		}
	case "fmt":
		a.Format = value
	case "str":
		a.Text = value
	case "v":
		a.Values = list()
	case "k":
		a.Kind = value
	case "n": // keep so many items of a list
		n, _ := strconv.Atoi(value)
		a.List = a.List[:n]
	case "st":
		a.Strides = nil
		for _, v := range list() {
			a.Strides = append(a.Strides, int(v))
		}
		a.Values = nil
	case "s":
		a.Kind, a.Dims, a.Values, a.Offset = "T", nil, nil, 0
		for _, v := range list() {
			a.Dims = append(a.Dims, int(v))
		}
		a.Strides, a.Storage = make([]int, len(a.Dims)), 1
		for i := len(a.Dims) - 1; i >= 0; i-- {
			a.Strides[i] = a.Storage
			a.Storage *= a.Dims[i]
		}
	default:
		t.Fatalf("edit %q", what)
	}
}

// Every operator refuses what the real one refuses, with its code and a text that names the argument. A line of refused.txt is an operator,
// the edits that make its first case wrong, the code, and a part of the text; "OP@x" takes the first case with a first tensor of dtype x.
func TestOperatorsRefuse(t *testing.T) {
	d := newDriver(t)
	cases := readCases(t)
	text, err := os.ReadFile("testdata/ops/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		left, right, ok := strings.Cut(line, " -> ")
		f := strings.Fields(left)
		code, want, ok2 := strings.Cut(right, " ")
		if !ok || !ok2 || len(f) < 2 {
			t.Fatalf("refused.txt:%d: %q", n+1, line)
		}
		name, dtype, _ := strings.Cut(f[0], "@")
		i := slices.IndexFunc(cases, func(c opCase) bool {
			return c.Op == name && (dtype == "" || slices.IndexFunc(c.Args, func(a opArg) bool { return a.Kind == "T" }) >= 0 && first(c.Args).DType == dtype)
		})
		if i < 0 {
			t.Errorf("refused.txt:%d: no case for %s", n+1, f[0])
			continue
		}
		c := cases[i]
		c.Args = slices.Clone(c.Args)
		for _, e := range f[1:] {
			c.edit(t, e)
		}
		a := d.call(t, &c, 1)
		if got := strconv.Itoa(a.code); got != code || !strings.Contains(a.text, want) {
			t.Errorf("refused.txt:%d: %s: %s %q", n+1, line, got, a.text)
		}
		refused[name] = true
	}
	for _, o := range abi.Ops() {
		if !refused[o.Name] && !slices.Contains(leftOut, o.Name) && !slices.Contains(elsewhere, o.Name) {
			t.Errorf("%s has no case that is refused", o.Name)
		}
	}
}

func first(l []opArg) opArg {
	return l[slices.IndexFunc(l, func(a opArg) bool { return a.Kind == "T" })]
}

// A tensor that must be there and is null gives 161001; a bf16 tensor on the first generation, and a dtype that nothing takes, 161002.
func TestOperatorsRefuseInGeneral(t *testing.T) {
	d := newDriver(t)
	seen := map[string]bool{}
	for _, c := range readCases(t) {
		if seen[c.Op] || len(c.Args) == 0 {
			continue
		}
		seen[c.Op] = true
		i := slices.IndexFunc(c.Args, func(a opArg) bool { return a.Kind == "T" || a.Kind == "L" })
		if i < 0 {
			continue
		}
		args := c.Args
		c.Args = slices.Clone(args)
		c.Args[i] = opArg{Kind: "N"}
		if a := d.call(t, &c, 1); a.code != 161001 || a.text == "" {
			t.Errorf("%s without its tensor %d: %d %q", c.Op, i, a.code, a.text)
		}
		c.Args = slices.Clone(args)
		if args[i].Kind == "T" {
			c.Args[i].DType, c.Args[i].Values = "u64", nil
			if a := d.call(t, &c, 1); a.code != 161002 || a.text == "" {
				t.Errorf("%s with u64: %d %q", c.Op, a.code, a.text)
			}
			c.Args[i].DType, c.Soc = "bf16", 9
			if a := d.call(t, &c, 1); a.code != 161002 && a.code != 561003 {
				t.Errorf("%s with bf16 on the first generation: %d %q", c.Op, a.code, a.text)
			}
		}
	}
}
