package roofline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Sample is one launch of a kernel in a step.
type Sample struct {
	Op   npu.Op
	Impl string
	Took time.Duration
}

// Kernel is what all launches of equal kernels of a step did.
type Kernel struct {
	Kind  string        `json:"kind"`
	Shape string        `json:"shape"` // inputs and outputs
	Impl  string        `json:"impl"`
	Count int           `json:"count"` // launches in a step
	Took  time.Duration `json:"ns"`    // of all of them
	Cost
	Bound time.Duration `json:"bound_ns"`
	By    Bound         `json:"bound_by"`
	Least time.Duration `json:"least_ns"` // a shorter time cannot be true
	op    npu.Op
}

// Group is what the kernels of a kind did.
type Group struct {
	Kind   string        `json:"kind"`
	Impls  []string      `json:"impls"`
	Count  int           `json:"count"`
	Share  float64       `json:"share"` // of the time of all kernels
	Took   time.Duration `json:"ns"`
	FLOP   int64         `json:"flop"`
	Bytes  int64         `json:"bytes"`
	Bound  time.Duration `json:"bound_ns"`
	By     Bound         `json:"bound_by"` // what bounds most of it
	Reason string        `json:"reason,omitempty"`
	least  time.Duration
}

// Ratio is the part of the bound that was reached.
func (g Group) Ratio() float64 { return ratio(g.Bound, g.Took) }

// Ratio is the part of the bound that was reached.
func (k Kernel) Ratio() float64 { return ratio(k.Bound, k.Took) }

func ratio(bound, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(bound) / float64(took)
}

// Report is a step beside what bounds it. Kinds and kernels are in the order of their times.
type Report struct {
	Took     time.Duration `json:"kernels_ns"` // all kernels
	Bound    time.Duration `json:"bound_ns"`
	Kinds    []Group       `json:"kinds"`
	Kernels  []Kernel      `json:"kernels"`
	Exceeded []string      `json:"exceeded,omitempty"` // what was faster than can be
}

// slack is by how much a time may be below what is possible: clocks and limits have errors too.
const slack = 0.05

// New compares the launches of a step with the limits of the device.
func New(step []Sample, l npu.Limits) *Report {
	r := &Report{}
	kernels := map[string]*Kernel{}
	for _, s := range step {
		key := s.Op.String() + " " + s.Impl
		k := kernels[key]
		if k == nil {
			k = &Kernel{Kind: KindOf(s.Op), Shape: Shapes(s.Op), Impl: s.Impl, op: s.Op}
			kernels[key] = k
		}
		k.add(s, l)
		r.Took += s.Took
	}
	groups := map[string]*Group{}
	for _, key := range slices.Sorted(maps.Keys(kernels)) {
		k := kernels[key]
		r.Kernels = append(r.Kernels, *k)
		g := groups[k.Kind]
		if g == nil {
			g = &Group{Kind: k.Kind}
			groups[k.Kind] = g
		}
		g.add(k)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		if r.Took > 0 {
			g.Share = float64(g.Took) / float64(r.Took)
		}
		g.By = r.mostly(name)
		g.Reason = reason(g, l)
		r.Bound += g.Bound
		if l.Threads > 0 && float64(g.Took) < (1-slack)*float64(g.least) {
			r.Exceeded = append(r.Exceeded, fmt.Sprintf("%s took %v, but needs at least %v", name, g.Took, g.least))
		}
		r.Kinds = append(r.Kinds, *g)
	}
	slices.SortStableFunc(r.Kinds, func(a, b Group) int { return cmp.Compare(b.Took, a.Took) })
	slices.SortStableFunc(r.Kernels, func(a, b Kernel) int { return cmp.Compare(b.Took, a.Took) })
	return r
}

func (k *Kernel) add(s Sample, l npu.Limits) {
	c := CostOf(s.Op)
	fewer, factors := ease(s.Op, s.Impl, c.Type)
	c.Type = factors
	bound, by, least := seconds(c, l, fewer)
	k.Count++
	k.Took += s.Took
	k.FLOP, k.Reads, k.Writes, k.Type = k.FLOP+c.FLOP, k.Reads+c.Reads, k.Writes+c.Writes, c.Type
	k.Bound += duration(bound)
	k.Least += duration(least)
	k.By = by
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * 1e9) }

func (g *Group) add(k *Kernel) {
	g.Count += k.Count
	g.Took += k.Took
	g.FLOP += k.FLOP
	g.Bytes += k.Bytes()
	g.Bound += k.Bound
	g.least += k.Least
	if !slices.Contains(g.Impls, k.Impl) {
		g.Impls = append(g.Impls, k.Impl)
	}
}

// mostly is what bounds most of the time of a kind.
func (r *Report) mostly(kind string) Bound {
	var compute, memory time.Duration
	for _, k := range r.Kernels {
		switch {
		case k.Kind != kind:
		case k.By == Compute:
			compute += k.Took
		default:
			memory += k.Took
		}
	}
	if compute > memory {
		return Compute
	}
	return Memory
}

// KindOf names what a kernel does. Products are told apart by their place in training, and conversions by whether the type changes.
func KindOf(o npu.Op) string {
	switch {
	case o.Kind == npu.MatMul && o.Attrs.Bool("ta"):
		return o.Kind + " dW"
	case o.Kind == npu.MatMul && o.Attrs.Bool("tb"):
		return o.Kind + " forward"
	case o.Kind == npu.MatMul:
		return o.Kind + " dX"
	case o.Kind == npu.Unary || o.Kind == npu.Binary || o.Kind == npu.Reduce:
		return o.Kind + " " + o.Attrs.Str("fn")
	case o.Kind == npu.Convert && len(o.In) == 1 && o.In[0].DType == o.Out[0].DType:
		return o.Kind + " layout"
	}
	return o.Kind
}

// Shapes prints the arguments of an op, without scalars and statistics unless there is nothing else.
func Shapes(o npu.Op) string {
	list := func(ds []npu.Desc) string {
		var s []string
		for _, d := range ds {
			if len(d.Shape) > 1 || len(ds) == 1 {
				s = append(s, d.String())
			}
		}
		if s == nil && len(ds) > 0 {
			s = []string{ds[len(ds)-1].String()}
		}
		return strings.Join(s, ", ")
	}
	text := list(o.In) + " -> " + list(o.Out)
	if s := o.Attrs.Ints("stride"); len(s) == 2 && s[0]*s[1] != 1 {
		text += fmt.Sprintf(" stride %d", s[0])
	}
	return text
}
