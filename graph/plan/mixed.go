package plan

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// Mixed rewrites the graph so that activations live in dtype act (BF16 or F16): kinds say per argument what follows (kind.Class).
// Parameters, states and inputs keep their dtype and are converted where they are used, once in the forward and once
// in the backward pass; gradients of parameters end in float32. (Micikevicius et al., arXiv 1710.03740.) With F16 the loss must be scaled, and what
// sums or grows stays float32; bfloat16 needs neither.
func Mixed(g *Graph, act npu.DType) (*Graph, error) {
	m := &mixer{old: g, act: act, g: &Graph{}, to: make([]ID, len(g.Values)), casts: map[cast]ID{}}
	for i, v := range g.Values {
		m.to[i] = None
		if v.Role != Temp {
			m.to[i] = m.g.Add(v)
		}
	}
	for _, c := range g.Calls {
		if err := m.call(c); err != nil {
			return nil, fmt.Errorf("plan: mixed precision: %s %q: %w", c.Kind, c.Name, err)
		}
	}
	for _, o := range g.Outputs {
		m.g.Outputs = append(m.g.Outputs, Output{o.Name, m.as(m.to[o.Value], g.Values[o.Value].Desc.DType, "", false)})
	}
	for _, t := range g.Trained {
		n := Trained{Param: m.to[t.Param], Grad: None}
		if t.Grad != None {
			n.Grad = m.as(m.to[t.Grad], npu.F32, g.Values[t.Param].Name, true)
		}
		m.g.Trained = append(m.g.Trained, n)
	}
	return m.g, nil
}

type cast struct {
	v    ID
	t    npu.DType
	back bool
}

type mixer struct {
	old, g *Graph
	act    npu.DType
	to     []ID
	casts  map[cast]ID
}

func (m *mixer) dtype(v ID) npu.DType { return m.g.Values[v].Desc.DType }

// as returns v in dtype t, by a convert that is shared within a pass.
func (m *mixer) as(v ID, t npu.DType, name string, back bool) ID {
	if m.dtype(v) == t {
		return v
	}
	k := cast{v, t, back}
	if id, ok := m.casts[k]; ok {
		return id
	}
	d := m.g.Values[v].Desc.As(t)
	out := m.g.Add(Value{Name: m.g.Values[v].Name, Desc: d})
	m.g.Calls = append(m.g.Calls, Call{Kind: npu.Convert, Attrs: npu.Attrs{"dtype": t.String()}, In: []ID{v}, Out: []ID{out}, Name: name, Back: back})
	m.casts[k] = out
	return out
}

func (m *mixer) call(c Call) error {
	n := c
	n.In, n.Out = make([]ID, len(c.In)), make([]ID, len(c.Out))
	var k *op.Kind
	if c.Host == nil {
		var err error
		if k, err = op.Lookup(c.Kind); err != nil {
			return err
		}
	}
	low := m.lowers(c, k)
	if low && m.act == npu.F16 && c.Kind == npu.Reduce && c.Attrs.Str("fn") == "sum" && c.Attrs.Str("out") == "" {
		n.Attrs = c.Attrs.Clone() // a sum over many elements overflows
		n.Attrs["out"] = npu.F32.String()
	}
	descs := make([]npu.Desc, len(c.In))
	for i, in := range c.In {
		v := m.to[in]
		if t := m.dtype(v); (t == npu.F32 || t == m.act) && c.Kind != npu.Convert {
			want := npu.F32
			if k != nil && k.InClass(n.Attrs, i) == kind.Keep {
				want = t
			} else if k != nil && k.InClass(n.Attrs, i) == kind.Act && low {
				want = m.act
			}
			v = m.as(v, want, c.Name, c.Back)
		}
		n.In[i], descs[i] = v, m.g.Values[v].Desc
	}
	var outs []npu.Desc
	if k != nil {
		var err error
		if outs, err = k.Infer(n.Attrs, descs); err != nil {
			return err
		}
	}
	for j, o := range c.Out {
		if o == None {
			n.Out[j] = None
			continue
		}
		if m.old.Values[o].Role != Temp { // state, updated in place
			n.Out[j] = m.to[o]
			continue
		}
		v := m.old.Values[o]
		if outs != nil {
			v.Desc = outs[j]
		}
		m.to[o] = m.g.Add(v)
		n.Out[j] = m.to[o]
	}
	m.g.Calls = append(m.g.Calls, n)
	if k != nil && k.Rounds {
		for j, o := range c.Out {
			if o != None && k.OutClass(n.Attrs, j) == kind.Act && m.dtype(m.to[o]) == npu.F32 {
				m.to[o] = m.as(m.to[o], m.act, c.Name, c.Back)
			}
		}
	}
	return nil
}

// lowers says whether the call computes in the low dtype.
func (m *mixer) lowers(c Call, k *op.Kind) bool {
	if k == nil || m.act == npu.F16 && k.Wide != nil && k.Wide(c.Attrs) {
		return false
	}
	if !k.Follows {
		return true
	}
	some := false
	for _, in := range c.In {
		v := m.to[in]
		switch {
		case m.dtype(v) == m.act:
			some = true
		case m.dtype(v) == npu.F32 && m.g.Values[v].Role == Temp:
			return false
		}
	}
	return some
}
