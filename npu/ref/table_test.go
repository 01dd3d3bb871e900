package ref_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// kindsOfContract reads the constants of npu/kinds.go.
func kindsOfContract(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../kinds.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok {
			for _, v := range s.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					k, _ := strconv.Unquote(lit.Value)
					kinds = append(kinds, k)
				}
			}
		}
		return true
	})
	if len(kinds) < 30 {
		t.Fatalf("found only %d kinds in kinds.go", len(kinds))
	}
	return kinds
}

// TestEveryKind: a kind of the contract that has no implementation here, or no reference values from PyTorch, fails.
func TestEveryKind(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range loadFixtures(t).Cases {
		tested[c.Kind] = true
	}
	fn := map[string]string{npu.Unary: "exp", npu.Binary: "add", npu.Reduce: "sum"}
	for _, k := range kindsOfContract(t) {
		if !ref.Has(k, npu.Attrs{"fn": fn[k]}) {
			t.Errorf("%s: no implementation", k)
		}
		if !tested[k] {
			t.Errorf("%s: no case in testdata", k)
		}
	}
	for _, k := range []string{npu.Unary, npu.Binary, npu.Reduce, "no_such_kind"} {
		if ref.Has(k, npu.Attrs{"fn": "nope"}) {
			t.Errorf("Has(%s, fn=nope)", k)
		}
	}
}

// TestMutilated breaks every fixture op in many ways. Whatever is wrong must end in an error that names the kind, or in a run;
// never in a panic.
func TestMutilated(t *testing.T) {
	f := loadFixtures(t)
	for _, c := range f.Cases {
		op := npu.Op{Kind: c.Kind, Attrs: attrs(t, c.Attrs)}
		for _, n := range c.In {
			op.In = append(op.In, f.tensors[n].desc)
		}
		for _, n := range c.Out {
			op.Out = append(op.Out, f.tensors[n].desc)
		}
		for what, bad := range mutants(op) {
			var args [][]byte
			for _, d := range append(append([]npu.Desc{}, bad.In...), bad.Out...) {
				args = append(args, make([]byte, max(0, d.PlainBytes())))
			}
			err := ref.Run(bad, args)
			if err != nil && !strings.Contains(err.Error(), c.Kind) {
				t.Errorf("%s, %s: error does not name the kind: %v", c.Name, what, err)
			}
			if err == nil && strings.HasPrefix(what, "!") {
				t.Errorf("%s, %s: no error for %s", c.Name, what, bad)
			}
		}
	}
}

// mutants of an op; those that start with ! must fail.
func mutants(op npu.Op) map[string]npu.Op {
	m := map[string]npu.Op{}
	add := func(what string, change func(o *npu.Op)) {
		o := op.Clone()
		o.Attrs = op.Attrs.Clone()
		change(&o)
		m[what] = o
	}
	add("!no outputs", func(o *npu.Op) { o.Out = nil })
	add("!one output more", func(o *npu.Op) { o.Out = append(o.Out, npu.D(npu.F32, 1)) })
	if op.Kind != npu.Fill {
		add("!no inputs", func(o *npu.Op) { o.In = nil })
	}
	for i, d := range op.In {
		if len(op.In) > 1 && op.Kind != npu.Concat && op.Kind != npu.SumSq {
			add("!without input "+strconv.Itoa(i), func(o *npu.Op) { o.In = append(o.In[:i:i], o.In[i+1:]...) })
		}
		if len(d.Shape) > 0 {
			add("!negative "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].Shape = d.Shape.Clone(); o.In[i].Shape[0] = -1 })
			add("rank less "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].Shape = d.Shape[1:] })
			add("longer "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].Shape = d.Shape.Clone(); o.In[i].Shape[len(d.Shape)-1]++ })
			add("empty "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].Shape = d.Shape.Clone(); o.In[i].Shape[0] = 0 })
		}
		add("rank more "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].Shape = append(d.Shape.Clone(), 2) })
		add("type "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].DType = npu.U8 })
		add("!invalid type "+strconv.Itoa(i), func(o *npu.Op) { o.In[i].DType = npu.Invalid })
	}
	for i, d := range op.Out {
		if op.Kind == npu.Fill { // takes any shape
			break
		}
		add("!output rank "+strconv.Itoa(i), func(o *npu.Op) { o.Out[i].Shape = append(d.Shape.Clone(), 2) })
		add("!invalid output type "+strconv.Itoa(i), func(o *npu.Op) { o.Out[i].DType = npu.Invalid })
	}
	for k, v := range op.Attrs {
		add("without "+k, func(o *npu.Op) { delete(o.Attrs, k) })
		add("string "+k, func(o *npu.Op) { o.Attrs[k] = "x" })
		switch v := v.(type) {
		case []int:
			add("short "+k, func(o *npu.Op) { o.Attrs[k] = v[:len(v)/2] })
			add("long "+k, func(o *npu.Op) { o.Attrs[k] = append(append([]int{}, v...), 1) })
			add("negative "+k, func(o *npu.Op) { o.Attrs[k] = append([]int{-3}, v[min(1, len(v)):]...) })
			add("huge "+k, func(o *npu.Op) { o.Attrs[k] = append([]int{1 << 40}, v[min(1, len(v)):]...) })
		case int:
			add("zero "+k, func(o *npu.Op) { o.Attrs[k] = 0 })
			add("minus "+k, func(o *npu.Op) { o.Attrs[k] = -7 })
		case float64:
			add("above one "+k, func(o *npu.Op) { o.Attrs[k] = 1.5 })
		case bool:
			add("not "+k, func(o *npu.Op) { o.Attrs[k] = !v })
		}
	}
	return m
}

// TestUnwantedOutputs: nil outputs are skipped, and an output may be the memory of an input.
func TestUnwantedOutputs(t *testing.T) {
	bn := npu.Op{
		Kind:  npu.BatchNorm,
		Attrs: npu.Attrs{},
		In:    []npu.Desc{npu.D(npu.F32, 2, 1), npu.D(npu.F32, 1), npu.D(npu.F32, 1), npu.D(npu.F32, 1), npu.D(npu.F32, 1)},
	}
	bn.Out = append([]npu.Desc{bn.In[0]}, bn.In[1], bn.In[1], bn.In[1], bn.In[1])
	x, one, zero := f32(3, 5), f32(1), f32(0)
	mean, variance := f32(10), f32(20)
	if err := ref.Run(bn, [][]byte{x, one, zero, mean, variance, x, nil, nil, mean, variance}); err != nil {
		t.Fatal(err)
	}
	// mean 4, biased variance 1, unbiased 2; momentum 0.1
	wantF32(t, x, -0.999995, 0.999995)
	wantF32(t, mean, 0.9*10+0.1*4)
	wantF32(t, variance, 0.9*20+0.1*2)
}

func TestErrorsName(t *testing.T) {
	op := npu.Op{Kind: npu.CrossEntropy, In: []npu.Desc{npu.D(npu.F32, 2, 3), npu.D(npu.I32, 2)}, Out: []npu.Desc{npu.D(npu.F32)}}
	err := ref.Run(op, [][]byte{f32(1, 2, 3, 4, 5, 6), {1, 0, 0, 0, 3, 0, 0, 0}, f32(0)})
	if err == nil || !strings.Contains(err.Error(), "cross_entropy: row 1: label 3 outside 0…2\nhint: ") {
		t.Errorf("label out of range: %v", err)
	}
	mm := npu.Op{Kind: npu.MatMul, In: []npu.Desc{npu.D(npu.F32, 2, 3), npu.D(npu.F32, 4, 5)}, Out: []npu.Desc{npu.D(npu.F32, 2, 5)}}
	err = ref.Check(mm)
	if err == nil || !strings.Contains(err.Error(), "matmul{}(f32[2 3], f32[4 5]) -> f32[2 5]: inner dimensions differ: a [2 3]") {
		t.Errorf("matmul: %v", err)
	}
}
