package nputest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
	"github.com/gotrain/gotrain/npu/nputest"
	_ "github.com/gotrain/gotrain/npu/ref"
)

func open(t *testing.T) npu.Device {
	t.Helper()
	d, err := npu.Open("ref", npu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The device ref passes its own comparison: cases are well formed, errors are told, and results are where they must be.
func TestRef(t *testing.T) {
	nputest.Run(t, open(t), nputest.Options{Types: []npu.DType{npu.F32, npu.BF16, npu.F16}})
	for seed := range uint64(3) { // other shapes
		nputest.Run(quiet{t}, open(t), nputest.Options{Seed: 100 + seed, Types: []npu.DType{npu.F32}, N: 12})
	}
}

// The suite reaches device memory through copies only, from page-locked memory where a device wants that.
func TestSeparateMemory(t *testing.T) {
	d, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": "strict"}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	nputest.Run(quiet{t}, d, nputest.Options{Types: []npu.DType{npu.F32}, N: -1})
}

// quiet drops what is only logged.
type quiet struct{ *testing.T }

func (quiet) Logf(string, ...any) {}

// Every constant of npu/kinds.go has cases in the types that it is for.
func TestEveryKind(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		kind, _ := strconv.Unquote(lit.Value)
		kinds++
		flat := slices.Contains([]string{npu.SGD, npu.AdamW, npu.SumSq, npu.LARS, npu.LAMBMoments, npu.LAMB, npu.Scale, npu.EMA}, kind)
		for _, act := range []npu.DType{npu.F32, npu.BF16, npu.F16} {
			list := nputest.Cases(kind, act)
			if flat && act != npu.F32 {
				if len(list) > 0 {
					t.Errorf("%s has cases in %s", kind, act)
				}
				continue
			}
			if len(list) < 4 {
				t.Errorf("%s has %d cases in %s", kind, len(list), act)
			}
			for _, c := range list {
				if c.Fails == "" && c.Calls[len(c.Calls)-1].Kind != kind && c.Name != "ties" {
					t.Errorf("%s ends with %s", c, c.Calls[len(c.Calls)-1].Kind)
				}
			}
		}
		return true
	})
	if kinds != len(nputest.Kinds()) {
		t.Errorf("%d kinds, cases for %v", kinds, nputest.Kinds())
	}
}

// The cases do in place, and leave out, what package kind allows, all of it, and nothing else.
func TestFactsAreTried(t *testing.T) {
	for _, name := range nputest.Kinds() {
		k := kind.Of(name)
		tried := map[string]bool{}
		for _, c := range nputest.Cases(name, npu.F32) {
			for i, call := range c.Calls {
				k := kind.Of(call.Kind)
				ins, outs := k.Inputs(call.Attrs), k.Outputs(call.Attrs)
				allowed := append(k.Pairs(call.Attrs), k.States(call.Attrs)...)
				for _, p := range call.InPlace {
					what := outs[p[0]].Name + "=" + ins[p[1]].Name
					if tried[what] = tried[what] || call.Kind == name; !slices.Contains(allowed, p) {
						t.Errorf("%s: call %d: %s is not allowed", c, i, what)
					}
				}
				for _, j := range call.Nil {
					if tried[outs[j].Name] = tried[outs[j].Name] || call.Kind == name; !k.MayBeNil(call.Attrs, j) {
						t.Errorf("%s: call %d: %s must not be nil", c, i, outs[j].Name)
					}
				}
			}
		}
		for p := range strings.FieldsSeq(k.InPlace + " " + k.State) {
			if !tried[p] {
				t.Errorf("%s: no case has output=input %s in one place", name, p)
			}
		}
		for f := range strings.FieldsSeq(k.Out) {
			out, flags, _ := strings.Cut(f, ":")
			if strings.Contains(flags, "nil") && !strings.Contains(k.State, out+"=") && !tried[out] {
				t.Errorf("%s: no case leaves %s out", name, out)
			}
		}
	}
}

// Cases are the same at each call, and others under another seed.
func TestCasesAreFixed(t *testing.T) {
	for _, kind := range nputest.Kinds() {
		a, b := nputest.Cases(kind, npu.F32), nputest.Cases(kind, npu.F32)
		for i := range a {
			same := slices.EqualFunc(a[i].Tensors, b[i].Tensors, func(x, y nputest.Tensor) bool {
				return x.Desc.Equal(y.Desc) && slices.EqualFunc(x.Values, y.Values, func(v, w float64) bool { return v == w || v != v && w != w })
			})
			if a[i].String() != b[i].String() || !same {
				t.Errorf("case %d is %s, then %s", i, a[i], b[i])
			}
		}
	}
	a, b := nputest.Generate(npu.MatMul, npu.F32, 1, 8), nputest.Generate(npu.MatMul, npu.F32, 2, 8)
	if a[len(a)-1].String() == b[len(b)-1].String() {
		t.Error("the seed changes nothing")
	}
}
