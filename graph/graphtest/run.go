package graphtest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
)

// Machine holds the values of one graph.
type Machine struct {
	G    *plan.Graph
	mem  [][]byte
	byID map[string]plan.ID
}

// New makes a machine with zeroed inputs, parameters and states.
func New(g *plan.Graph) *Machine {
	m := &Machine{G: g, mem: make([][]byte, len(g.Values)), byID: map[string]plan.ID{}}
	for i, v := range g.Values {
		if v.Role != plan.Temp {
			m.mem[i] = make([]byte, v.Desc.PlainBytes())
			m.byID[v.Name] = plan.ID(i)
		}
	}
	return m
}

// NewF64 makes a machine that computes everything in float64, for gradient checks. The graph is copied.
func NewF64(g *plan.Graph) *Machine {
	c := *g
	c.Values = append([]plan.Value(nil), g.Values...)
	for i := range c.Values {
		if c.Values[i].Desc.DType == npu.F32 {
			c.Values[i].Desc.DType = npu.F64
		}
	}
	return New(&c)
}

// Has says whether an input, parameter or state has the name.
func (m *Machine) Has(name string) bool { _, ok := m.byID[name]; return ok }

// Set writes an input, parameter or state, rounding to its dtype.
func (m *Machine) Set(name string, v ...float64) error {
	id, ok := m.byID[name]
	if !ok {
		return fmt.Errorf("graphtest: no input, parameter or state %q", name)
	}
	d := m.G.Values[id].Desc
	if int64(len(v)) != d.Shape.Elems() {
		return fmt.Errorf("graphtest: %d values for %q, %s", len(v), name, d)
	}
	for i, x := range v {
		if err := encode(m.mem[id], i, x, d.DType); err != nil {
			return fmt.Errorf("graphtest: %q: %w", name, err)
		}
	}
	return nil
}

// Get reads any value by its ID.
func (m *Machine) Get(id plan.ID) []float64 {
	d := m.G.Values[id].Desc
	out := make([]float64, d.Shape.Elems())
	for i := range out {
		out[i] = decode(m.mem[id], i, d.DType)
	}
	return out
}

// Named reads an input, parameter, state or output.
func (m *Machine) Named(name string) ([]float64, error) {
	if id, ok := m.byID[name]; ok {
		return m.Get(id), nil
	}
	for _, o := range m.G.Outputs {
		if o.Name == name {
			return m.Get(o.Value), nil
		}
	}
	return nil, fmt.Errorf("graphtest: nothing is called %q", name)
}

// Grad reads the gradient of a parameter; nil if it has none.
func (m *Machine) Grad(param string) []float64 {
	for _, t := range m.G.Trained {
		if m.G.Values[t.Param].Name == param && t.Grad != plan.None {
			return m.Get(t.Grad)
		}
	}
	return nil
}

// Run executes all calls in order.
func (m *Machine) Run() error {
	for i, c := range m.G.Calls {
		op := npu.Op{Kind: c.Kind, Attrs: c.Attrs}
		var args [][]byte
		for _, in := range c.In {
			op.In = append(op.In, m.G.Values[in].Desc)
			args = append(args, m.mem[in])
		}
		for j, out := range c.Out {
			if out == plan.None {
				// The reference accepts unused outputs, but it must know how many there are.
				op.Out, args = append(op.Out, m.absent(c, op, j)), append(args, nil)
				continue
			}
			d := m.G.Values[out].Desc
			if m.mem[out] == nil {
				m.mem[out] = make([]byte, d.PlainBytes())
			}
			op.Out, args = append(op.Out, d), append(args, m.mem[out])
		}
		var err error
		if c.Host != nil {
			err = c.Host(args[:len(c.In)], args[len(c.In):])
		} else {
			err = ref.Run(op, args)
		}
		if err != nil {
			return fmt.Errorf("graphtest: call %d %s %q: %w", i, c.Kind, c.Name, err)
		}
	}
	return nil
}

func encode(b []byte, i int, x float64, t npu.DType) error {
	switch t {
	case npu.F32:
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
	case npu.F64:
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	case npu.I32:
		binary.LittleEndian.PutUint32(b[4*i:], uint32(int32(x)))
	case npu.I64:
		binary.LittleEndian.PutUint64(b[8*i:], uint64(int64(x)))
	case npu.U8, npu.I8:
		b[i] = byte(int(x))
	default:
		return fmt.Errorf("cannot set values of type %s", t)
	}
	return nil
}

func decode(b []byte, i int, t npu.DType) float64 {
	switch t {
	case npu.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	case npu.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	case npu.F16:
		return ref.FromF16(binary.LittleEndian.Uint16(b[2*i:]))
	case npu.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
	case npu.I32:
		return float64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	case npu.I64:
		return float64(int64(binary.LittleEndian.Uint64(b[8*i:])))
	case npu.U8:
		return float64(b[i])
	case npu.I8:
		return float64(int8(b[i]))
	}
	return math.NaN()
}
