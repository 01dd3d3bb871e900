package nn

import (
	"math"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// Conv2D is a square convolution with the parameters weight [Out C/Groups K K] and, with Bias, bias [Out].
type Conv2D struct {
	Out      int
	Kernel   int
	Stride   int // 0 is 1
	Pad      int
	Dilation int // 0 is 1
	Groups   int // 0 is 1
	Bias     bool
	Init     graph.Init // of the weight; the zero value is PyTorch's default, uniform in ±1/√fan_in
	Frozen   bool
}

// Apply implements Layer.
func (c Conv2D) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		groups, stride, dilation := max(c.Groups, 1), max(c.Stride, 1), max(c.Dilation, 1)
		in := b.Dim(x, 1)
		if in%groups != 0 {
			b.Failf("%d input channels do not divide into %d groups", in, groups)
		}
		w := b.Param("weight", npu.Shape{c.Out, in / groups, c.Kernel, c.Kernel}, orDefault(c.Init), frozen(c.Frozen)...)
		var bias *graph.Node
		if c.Bias {
			bias = b.Param("bias", npu.Shape{c.Out}, biasInit(in/groups*c.Kernel*c.Kernel), append(frozen(c.Frozen), graph.NoDecay())...)
		}
		y = b.Conv2D(x, w, bias, graph.Conv{
			Stride: graph.Square(stride), Pad: graph.Pad(c.Pad), Dilation: graph.Square(dilation), Groups: groups,
		})
	})
	return y
}

// Linear is a dense layer over the last axis with the parameters weight [Out In] and, unless NoBias, bias [Out].
type Linear struct {
	Out    int
	NoBias bool
	Init   graph.Init // of the weight; the zero value is PyTorch's default, uniform in ±1/√fan_in
	Frozen bool
}

// Apply implements Layer.
func (l Linear) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	var y *graph.Node
	b.In(name, func() {
		in := b.Dim(x, -1)
		w := b.Param("weight", npu.Shape{l.Out, in}, orDefault(l.Init), frozen(l.Frozen)...)
		var bias *graph.Node
		if !l.NoBias {
			bias = b.Param("bias", npu.Shape{l.Out}, biasInit(in), append(frozen(l.Frozen), graph.NoDecay())...)
		}
		y = b.Linear(x, w, bias)
	})
	return y
}

// MLP is a stack of Linear layers with an activation between them; the layers are called 0, 1, … .
type MLP struct {
	Hidden []int
	Out    int
	Act    Func // nil is Relu
}

// Apply implements Layer.
func (m MLP) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node {
	act := m.Act
	if act == nil {
		act = Relu
	}
	layers := Sequential{}
	for _, h := range m.Hidden {
		h := Linear{Out: h, Init: graph.KaimingNormal(graph.FanIn)}
		layers = append(layers, Named(func(b *graph.Builder, name string, x *graph.Node) *graph.Node {
			return act(b, h.Apply(b, name, x))
		}))
	}
	return append(layers, Linear{Out: m.Out}).Apply(b, name, x)
}

// Named is a layer as a function that takes its name.
type Named func(b *graph.Builder, name string, x *graph.Node) *graph.Node

// Apply implements Layer.
func (f Named) Apply(b *graph.Builder, name string, x *graph.Node) *graph.Node { return f(b, name, x) }

func orDefault(i graph.Init) graph.Init {
	if i == (graph.Init{}) {
		return graph.LeCunUniform()
	}
	return i
}

func biasInit(fanIn int) graph.Init {
	k := 1 / math.Sqrt(float64(max(fanIn, 1)))
	return graph.Between(-k, k)
}

func frozen(yes bool) []graph.ParamOption {
	if yes {
		return []graph.ParamOption{graph.Frozen()}
	}
	return nil
}
