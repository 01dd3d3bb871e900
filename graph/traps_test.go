package graph

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// The tests of this file hold the traps of Gorgonia shut; see doc.go for the list.

// Trap: Gorgonia's tensor package panics in init where a module that it needs does not know this version of Go.
func TestLinkedBinaryStarts(t *testing.T) {
	out, err := exec.Command(os.Args[0], "-test.run=^$").CombinedOutput()
	if err != nil {
		t.Fatalf("a binary that links Gorgonia does not start: %v\n%s", err, out)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "go4.org/unsafe/assume-no-moving-gc v0.0.0-20231121144256-b99613f794b6") {
		t.Error("go.mod lacks the pin of assume-no-moving-gc that asks the runtime instead of listing versions")
	}
}

// Trap: nodes of equal hash are merged silently.
func TestNothingMerges(t *testing.T) {
	b := New()
	x := b.Input("x", npu.F32, 2, 3)
	var nodes []*Node
	c := npu.Shape{3}
	g, s := b.Param("g", c, Ones()), b.State("s", c, 0)
	v := b.State("v", c, 1)
	for range 2 {
		nodes = append(nodes, b.Relu(x), b.Add(x, x), b.Dropout(x, 0.5), b.Const(npu.F32, 1), b.Const(npu.F64, 1), b.BatchNorm(x, g, g, s, v, 1e-5, 0.1))
	}
	nodes = append(nodes, b.Dropout(x, 0.9), b.BatchNorm(x, g, g, s, v, 1e-3, 0.1))
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	seen := map[*Node]bool{}
	for _, n := range nodes {
		seen[n] = true
	}
	if len(seen) != len(nodes) {
		t.Errorf("%d nodes out of %d calls", len(seen), len(nodes))
	}
}

func TestNamesAreTakenOnce(t *testing.T) {
	for _, second := range []func(b *Builder){
		func(b *Builder) { b.Input("a.w", npu.F32, 2) },
		func(b *Builder) { b.State("a.w", npu.Shape{2}, 0) },
		func(b *Builder) { b.In("a", func() { b.Param("w", npu.Shape{2}, Zeros()) }) },
		func(b *Builder) { b.Input("", npu.F32, 2) },
		func(b *Builder) { b.Input("a b", npu.F32, 2) },
	} {
		b := New()
		b.Param("a.w", npu.Shape{2}, Zeros())
		if second(b); b.Err() == nil {
			t.Error("no error")
		}
	}
}

// A clash of hashes is provoked by giving a number out twice; the second node must still be distinct.
func TestHashClash(t *testing.T) {
	b := New()
	x := b.Input("x", npu.F32, 2)
	first := b.Relu(x)
	b.seq--
	if second := b.Relu(x); second == first || b.Err() != nil {
		t.Errorf("the second node is the first: %t, %v", second == first, b.Err())
	}
	// Where each further number clashes too, it is an error.
	k, _ := op.Lookup(npu.Relu)
	d := b.Desc(x)
	mk := func(kids gorgonia.Nodes) gorgonia.Op {
		return &call{b: b, seq: 7, kind: k, kids: kids, in: []npu.Desc{d}, out: []npu.Desc{d}}
	}
	if _, err := b.unique(mk, []*Node{x}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.unique(mk, []*Node{x}); err == nil || !strings.Contains(err.Error(), "Salt") {
		t.Errorf("clash: %v", err)
	}
}

// The additions that Grad inserts are Gorgonia's own nodes; a wrong one must be noticed.
func TestMergedSumIsNoticed(t *testing.T) {
	b := New()
	x := b.Param("x", npu.Shape{2}, Zeros())
	p, q, r := b.Relu(x), b.Neg(x), b.Exp(x)
	sum := b.Raw(func() (*Node, error) { return gorgonia.ReduceAdd(gorgonia.Nodes{p, q, r}) })
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	b.grad.parts = map[*Node][]*Node{x: {p, q, r}}
	if err := b.checkSum(x, sum); err != nil {
		t.Errorf("right sum: %v", err)
	}
	for _, parts := range [][]*Node{{q, p, r}, {p, q}, {p, q, r, r}, {p}} {
		b.grad.parts[x] = parts
		if b.checkSum(x, sum) == nil {
			t.Errorf("a sum of other parts passed")
		}
	}
}

// Trap: contracts that the compiler cannot check. The one op struct must meet them for every kind.
func TestOpContract(t *testing.T) {
	b := New()
	x := b.Input("x", npu.F32, 2, 3)
	c := b.Relu(x).Op().(*call)
	if c.Type() == c.Type() {
		t.Error("Type returns one value twice; Gorgonia recycles it")
	}
	s, _ := c.InferShape()
	s[0] = 99
	if c.out[0].Shape[0] != 2 {
		t.Error("InferShape hands out its own memory")
	}
	for n := range 4 {
		if len(c.DiffWRT(n)) != n {
			t.Errorf("DiffWRT(%d) has length %d", n, len(c.DiffWRT(n)))
		}
	}
	if _, err := c.Do(); err == nil {
		t.Error("Do without a device succeeds")
	}
}

func init() {
	same := func(_ npu.Attrs, in []npu.Desc) ([]npu.Desc, error) { return in[:1], nil }
	bad := func(name string, g func(t op.Tape, c op.Call) ([]op.Ref, error)) {
		op.Register(&op.Kind{Kind: kind.Register(&kind.Kind{Name: name, In: "x", Out: "y", Shape: same}), Grad: g})
	}
	bad("test_nil", func(op.Tape, op.Call) ([]op.Ref, error) { return []op.Ref{nil}, nil })
	bad("test_short", func(op.Tape, op.Call) ([]op.Ref, error) { return nil, nil })
	bad("test_shape", func(t op.Tape, c op.Call) ([]op.Ref, error) {
		return t.Apply(npu.Reshape, npu.Attrs{"shape": []int{2, 1}}, c.DOut)
	})
	bad("test_apply", func(t op.Tape, c op.Call) ([]op.Ref, error) { return t.Apply("no such kind", nil, c.DOut) })
	bad("test_panic", func(op.Tape, op.Call) ([]op.Ref, error) { panic("boom") })
}

func TestBadRuleIsAnError(t *testing.T) {
	for kind, want := range map[string]string{
		"test_nil": "returns no gradient", "test_short": "returns no gradient", "test_shape": "f32[2 1]", "test_apply": "no such kind", "test_panic": "boom",
	} {
		b := New()
		var y *Node
		b.In("layer", func() { y = b.Apply(kind, nil, b.Param("w", npu.Shape{2}, Zeros()))[0] })
		b.Loss(b.Sum(y))
		if err := b.Grad(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Trap: a second Grad on one graph gives the gradients of the first.
func TestGradOnce(t *testing.T) {
	b := New()
	loss := b.Sum(b.Param("w", npu.Shape{2}, Zeros()))
	b.Loss(loss)
	if err := b.Grad(); err != nil {
		t.Fatal(err)
	}
	if err := b.Grad(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("second Grad: %v", err)
	}
	b = New()
	w := b.Param("w", npu.Shape{2}, Zeros())
	b.Loss(b.Sum(w))
	if b.Loss(b.Mean(w)); b.Err() == nil {
		t.Error("second loss: no error")
	}
	if err := New().Grad(); err == nil {
		t.Error("Grad without a loss: no error")
	}
	b = New(ForEval())
	b.Loss(b.Sum(b.Param("w", npu.Shape{2}, Zeros())))
	if err := b.Grad(); err == nil {
		t.Error("Grad in evaluation: no error")
	}
	b = New()
	if b.Loss(b.Param("w", npu.Shape{1}, Zeros())); b.Err() == nil {
		t.Error("loss of shape [1]: no error")
	}
}

// Trap: one output per node. Outputs of one call come from one call, and unread ones are not asked for.
func TestMultiOutput(t *testing.T) {
	b := New(ForEval())
	x := b.Input("x", npu.F32, 1, 1, 4, 4)
	out := b.Apply(npu.MaxPool, npu.Attrs{"kernel": []int{2, 2}, "stride": []int{2, 2}}, x)
	b.Output("idx", out[1])
	b.Output("y", b.MaxPool(x, Pool{Kernel: Square(2)}))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Calls) != 2 || g.Calls[0].Out[1] != g.Outputs[0].Value || g.Calls[1].Out[1] != -1 {
		t.Errorf("calls %+v, outputs %+v", g.Calls, g.Outputs)
	}
}

// Trap: one node may be the gradient of several parameters.
func TestSharedGradient(t *testing.T) {
	b := New()
	s := npu.Shape{2, 2}
	w1, w2 := b.Param("w1", s, Zeros()), b.Param("w2", s, Zeros())
	b.Loss(b.Sum(b.Square(b.Add(w1, w2))))
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Trained) != 2 || g.Trained[0].Grad != g.Trained[1].Grad || g.Trained[0].Param == g.Trained[1].Param {
		t.Errorf("trained %+v", g.Trained)
	}
}

// Trap: process-wide state in Gorgonia. Meant for -race.
func TestConcurrentBuilders(t *testing.T) {
	var wg sync.WaitGroup
	plans := make([]string, 8)
	for i := range plans {
		wg.Go(func() { plans[i] = printed(t, smallModel()) })
	}
	wg.Wait()
	for _, p := range plans[1:] {
		if p != plans[0] {
			t.Fatal("the same code gave different plans")
		}
	}
}

func smallModel() *Builder {
	b := New()
	x := b.Input("x", npu.F32, 4, 3)
	w := b.Param("w", npu.Shape{3, 3}, XavierUniform())
	h := b.Relu(b.MatMul(x, w, false, false))
	h = b.Add(h, b.MatMul(h, w, false, true))
	loss, _ := b.CrossEntropy(b.Add(h, b.Param("bias", npu.Shape{3}, Zeros())), b.Input("l", npu.I32, 4))
	b.Loss(loss)
	return b
}

// printed is a lowered graph as text.
func printed(t *testing.T, b *Builder) string {
	g, err := b.Lower()
	if err != nil {
		t.Error(err)
		return ""
	}
	var s strings.Builder
	for _, c := range g.Calls {
		s.WriteString(c.Name + " " + c.Kind + "{" + c.Attrs.String() + "}")
		for _, v := range slices.Concat(c.In, c.Out) {
			if s.WriteString(" "); v >= 0 {
				s.WriteString(g.Values[v].Name + ":" + g.Values[v].Desc.String())
			}
		}
		s.WriteString("\n")
	}
	return s.String()
}

func TestLowerIsDeterministic(t *testing.T) {
	first := printed(t, smallModel())
	for range 5 {
		if p := printed(t, smallModel()); p != first {
			t.Fatalf("the same code gave\n%s\nand\n%s", first, p)
		}
	}
	b := smallModel()
	if a, c := printed(t, b), printed(t, b); a != c || a != first {
		t.Error("lowering twice gives two plans")
	}
}

func TestForeignNodes(t *testing.T) {
	b, other := New(), New()
	x := other.Input("x", npu.F32, 2)
	if b.Relu(x); b.Err() == nil || !strings.Contains(b.Err().Error(), "another graph") {
		t.Errorf("foreign node: %v", b.Err())
	}
	b = New()
	if b.Relu(nil); b.Err() == nil || !strings.Contains(b.Err().Error(), "nil") {
		t.Errorf("nil node: %v", b.Err())
	}
	b = New(ForEval())
	raw := gorgonia.NewVector(b.Graph(), tensor.Float32, gorgonia.WithShape(3), gorgonia.WithName("raw"))
	b.Output("y", b.Relu(raw))
	if _, err := b.Lower(); err == nil || !strings.Contains(err.Error(), `"raw"`) {
		t.Errorf("raw input: %v", err)
	}
}
