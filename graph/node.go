package graph

import (
	"fmt"
	"hash"
	"hash/fnv"
	"reflect"

	"github.com/chewxy/hm"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

type (
	bf16 uint16
	f16  uint16
)

// dtypes maps the contract's element types to Gorgonia's. Gorgonia only carries the 16-bit ones.
var dtypes = map[npu.DType]tensor.Dtype{
	npu.F32: tensor.Float32, npu.F64: tensor.Float64, npu.I32: tensor.Int32, npu.I64: tensor.Int64, npu.U8: tensor.Uint8, npu.I8: tensor.Int8,
	npu.BF16: {Type: reflect.TypeOf(bf16(0))}, npu.F16: {Type: reflect.TypeOf(f16(0))},
}

func descOf(n *Node) (npu.Desc, error) {
	shape := npu.Shape(n.Shape())
	if c, ok := n.Op().(*call); ok {
		return c.out[0], nil
	}
	dt := n.Dtype()
	if dt == tensor.Int { // Gorgonia's own index type
		return npu.D(npu.I64, shape...), nil
	}
	for t, d := range dtypes {
		if d == dt {
			return npu.D(t, shape...), nil
		}
	}
	return npu.Desc{}, fmt.Errorf("node %q has dtype %v, which no device supports", n.Name(), dt)
}

// typeOf is the Gorgonia type of a desc. Made anew at each call, because Gorgonia recycles types.
func typeOf(d npu.Desc) hm.Type {
	if len(d.Shape) == 0 {
		return dtypes[d.DType]
	}
	return gorgonia.TensorType{Dims: len(d.Shape), Of: dtypes[d.DType]}
}

// call is the one Gorgonia op that carries every kind. What Gorgonia demands of an op and no compiler checks is met here once: a fresh
// Type, a DiffWRT of the right length, a hash that no other call shares (seq), gradients that are not nil where promised.
type call struct {
	b     *Builder
	seq   uint64
	kind  *op.Kind
	attrs npu.Attrs
	kids  gorgonia.Nodes // the slice that the node holds, so that a child exchanged by Gorgonia shows
	in    []npu.Desc
	out   []npu.Desc
	path  string
	block string // see Builder.Block
	back  bool
	picks map[int]*Node // nodes of outputs 1…
}

func (c *call) Arity() int { return len(c.in) }
func (c *call) Type() hm.Type {
	t := make([]hm.Type, 0, len(c.in)+1)
	for _, d := range c.in {
		t = append(t, typeOf(d))
	}
	return hm.NewFnType(append(t, typeOf(c.out[0]))...)
}
func (c *call) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.Shape(c.out[0].Shape.Clone()), nil
}
func (c *call) Do(...gorgonia.Value) (gorgonia.Value, error) {
	return nil, fmt.Errorf("graph: %s runs only on a device; compile the graph instead of passing it to a Gorgonia machine", c.kind.Name)
}
func (c *call) ReturnsPtr() bool      { return false }
func (c *call) CallsExtern() bool     { return true }
func (c *call) OverwritesInput() int  { return -1 }
func (c *call) WriteHash(h hash.Hash) { fmt.Fprintf(h, "gotrain.%s#%d", c.kind.Name, c.seq) }
func (c *call) Hashcode() uint32      { return hashOf(c) }
func (c *call) String() string        { return c.kind.Name }

func (c *call) DiffWRT(n int) []bool {
	d := make([]bool, n)
	if c.kind.Grad == nil || n != len(c.in) {
		return d
	}
	if c.kind.DiffWRT != nil {
		copy(d, c.kind.DiffWRT(c.attrs, n))
		return d
	}
	for i, in := range c.in {
		d[i] = in.DType.IsFloat()
	}
	return d
}

func (c *call) SymDiff(in gorgonia.Nodes, out, dy *Node) (gorgonia.Nodes, error) {
	return c.b.differentiate(c, in, out, dy)
}

func hashOf(o gorgonia.Op) uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// pick is output i of the call that is its only child. The device gives a call all its outputs at once, so a pick costs nothing.
type pick struct {
	seq  uint64
	main *call
	i    int
}

func (p *pick) Arity() int                                   { return 1 }
func (p *pick) Type() hm.Type                                { return hm.NewFnType(typeOf(p.main.out[0]), typeOf(p.main.out[p.i])) }
func (p *pick) Do(...gorgonia.Value) (gorgonia.Value, error) { return p.main.Do() }
func (p *pick) ReturnsPtr() bool                             { return false }
func (p *pick) CallsExtern() bool                            { return true }
func (p *pick) OverwritesInput() int                         { return -1 }
func (p *pick) WriteHash(h hash.Hash)                        { fmt.Fprintf(h, "gotrain.pick%d#%d", p.i, p.seq) }
func (p *pick) Hashcode() uint32                             { return hashOf(p) }
func (p *pick) String() string                               { return fmt.Sprintf("%s.%d", p.main.kind.Name, p.i) }
func (p *pick) DiffWRT(n int) []bool                         { return make([]bool, n) }
func (p *pick) SymDiff(in gorgonia.Nodes, _, _ *Node) (gorgonia.Nodes, error) {
	return make(gorgonia.Nodes, len(in)), nil
}
func (p *pick) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return tensor.Shape(p.main.out[p.i].Shape.Clone()), nil
}
