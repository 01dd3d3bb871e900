package graph

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
)

// Apply adds a call of any registered kind (package op) and returns its outputs. After an error it returns as many placeholders as
// any kind has outputs.
func (b *Builder) Apply(kind string, attrs npu.Attrs, in ...*Node) []*Node {
	if n := b.apply(kind, attrs, in); b.err == nil {
		mu.Lock()
		defer mu.Unlock()
		c := n.Op().(*call)
		out := []*Node{n}
		for i := 1; i < len(c.out) && b.err == nil; i++ {
			out = append(out, b.pick(n, i))
		}
		return out
	}
	return slices.Repeat([]*Node{b.placeholder}, 8)
}

// apply is Apply for the first output.
func (b *Builder) apply(kind string, attrs npu.Attrs, in []*Node) *Node {
	if !b.outside() {
		return b.placeholder
	}
	k, err := op.Lookup(kind)
	if err != nil {
		b.Failf("%w\nhint: use one of the registered kinds: %s", err, strings.Join(op.Names(), ", "))
		return b.placeholder
	}
	for i, n := range in {
		if !b.owns(n, fmt.Sprintf("%s: input %d", kind, i)) {
			return b.placeholder
		}
	}
	mu.Lock()
	defer mu.Unlock()
	n, err := b.add(k, attrs, in)
	if err != nil {
		b.Failf("%s: %w", kind, err)
		return b.placeholder
	}
	return n
}

// add makes the node of a call. mu is held.
func (b *Builder) add(k *op.Kind, attrs npu.Attrs, in []*Node) (*Node, error) {
	descs := make([]npu.Desc, len(in))
	for i, n := range in {
		var err error
		if descs[i], err = descOf(n); err != nil {
			return nil, err
		}
	}
	attrs = ownAttrs(attrs)
	out, err := k.Infer(attrs, descs)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, errors.New("has no inputs\nhint: use Builder.Const")
	}
	n, err := b.unique(func(kids gorgonia.Nodes) gorgonia.Op {
		return &call{b: b, seq: b.seq, kind: k, attrs: attrs, kids: kids, in: descs, out: out, path: b.path, block: b.block, back: b.grad.running}
	}, in)
	if err == nil && k.Indexes != nil {
		b.indexed = append(b.indexed, n.Op().(*call))
	}
	return n, err
}

// unique applies an op and makes sure that the node is the new one: Gorgonia merges nodes by a 32-bit hash, and may exchange children likewise.
// A clash is tried again with another number.
func (b *Builder) unique(mk func(kids gorgonia.Nodes) gorgonia.Op, in []*Node) (n *Node, err error) {
	for range 4 {
		b.seq++
		kids := slices.Clone(gorgonia.Nodes(in))
		o := mk(kids)
		if n, err = applyOp(o, kids); err != nil {
			return nil, err
		}
		if n.Op() == o && slices.Equal(kids, in) {
			return n, nil
		}
	}
	return nil, fmt.Errorf("gorgonia merged the node with another one, %q, because of a hash collision\nhint: pass graph.Salt(1) to graph.New", n.Name())
}

// applyOp is gorgonia.ApplyOp with its panics turned into errors.
func applyOp(o gorgonia.Op, kids gorgonia.Nodes) (n *Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gorgonia: %v", p)
		}
	}()
	return gorgonia.ApplyOp(o, kids...)
}

// pick is the node of output i of the call that n stands for. mu is held.
func (b *Builder) pick(n *Node, i int) *Node {
	c := n.Op().(*call)
	if p, ok := c.picks[i]; ok {
		return p
	}
	p, err := b.unique(func(gorgonia.Nodes) gorgonia.Op { return &pick{seq: b.seq, main: c, i: i} }, []*Node{n})
	if err != nil {
		b.Failf("%s: output %d: %w", c.kind.Name, i, err)
		return b.placeholder
	}
	if c.picks == nil {
		c.picks = map[int]*Node{}
	}
	c.picks[i] = p
	return p
}

// Raw runs raw Gorgonia code under the lock that all building takes, and makes its error the Builder's:
//
//	y := b.Raw(func() (*graph.Node, error) { return gorgonia.HadamardProd(x, z) })
//
// f must not call methods of a Builder. Built-in ops that have a counterpart here become that; others run on the host, with a warning.
func (b *Builder) Raw(f func() (*Node, error)) *Node {
	if !b.outside() {
		return b.placeholder
	}
	n, err := func() (n *Node, err error) {
		mu.Lock()
		defer mu.Unlock()
		b.raw = true
		defer func() {
			b.raw = false
			if p := recover(); p != nil {
				err = fmt.Errorf("gorgonia: %v", p)
			}
		}()
		return f()
	}()
	if err != nil {
		b.Failf("raw op: %w", err)
	} else if b.owns(n, "result of a raw op") {
		return n
	}
	return b.placeholder
}

// ownAttrs copies attributes and the slices in them, so that a caller may go on using its own.
func ownAttrs(a npu.Attrs) npu.Attrs {
	c := make(npu.Attrs, len(a))
	maps.Copy(c, a)
	for k, v := range c {
		switch v := v.(type) {
		case []int:
			c[k] = append([]int{}, v...)
		case []float64:
			c[k] = append([]float64{}, v...)
		}
	}
	return c
}

// callSite is the file and line outside this package and its children from which the Builder was called.
func callSite() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		own := strings.Contains(f.Function, "/gotrain/graph.") || strings.Contains(f.Function, "/gotrain/graph/")
		if f.File != "" && (!own || strings.HasSuffix(f.File, "_test.go")) {
			if strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "testing.") {
				return ""
			}
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}
