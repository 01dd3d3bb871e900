package lower_test

import (
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

// target is a device on paper: what it has and how it wants layouts.
type target struct{ caps lower.Caps }

func (t target) Has(kind string, a npu.Attrs) bool { return lower.Has(kind, a, t.caps) }
func (t target) Choose(op npu.Op) (npu.Op, error)  { return lower.Choose(op, t.caps) }
func (t target) Bytes(d npu.Desc) (int64, error)   { return lower.Bytes(d) }
func version(major, minor int, f lower.Family) target {
	return target{lower.Caps{Family: f, Version: lower.Version{Major: major, Minor: minor}}}
}

// step is what a training step without its optimizer launches.
type step struct {
	calls   int            // of operators
	scratch int64          // bytes of the largest program's temporaries
	byKind  map[string]int // calls
	ops     map[string]int // calls by operator
	kernels int            // steps of the plan
}

// launches lowers the steps of a plan. Which results lie over inputs is what the plan says.
func launches(t *testing.T, b *graph.Builder, to target, o plan.Options) step {
	t.Helper()
	g, err := b.Lower()
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Build(g, to, o)
	if err != nil {
		t.Fatal(err)
	}
	s := step{byKind: map[string]int{}, ops: map[string]int{}, kernels: len(p.Steps)}
	programs := map[string]*lower.Program{}
	for _, x := range p.Steps {
		if x.Host != nil {
			t.Fatalf("%s of %q runs on the host", x.Op.Kind, x.Name)
		}
		pr := programs[x.Op.String()]
		if pr == nil {
			if pr, err = lower.Lower(x.Op, to.caps); err != nil {
				t.Fatal(err)
			}
			programs[x.Op.String()] = pr
		}
		same := func(a, b lower.Ref) bool { // an output and an input
			out, in := x.Out[a.Index], x.In[b.Index]
			if out == plan.None {
				return false
			}
			u, v := p.Memory(out), p.Memory(in)
			return u == v || p.Tensors[u].Place == plan.Arena && p.Tensors[v].Place == plan.Arena && p.Tensors[u].Offset == p.Tensors[v].Offset
		}
		for _, c := range pr.Calls {
			if c.Holds(same) {
				s.calls, s.byKind[x.Op.Kind], s.ops[c.Op] = s.calls+1, s.byKind[x.Op.Kind]+1, s.ops[c.Op]+1
			}
		}
		s.scratch = max(s.scratch, pr.Scratch)
	}
	return s
}

// resnet50 is a training step of ResNet50.
func resnet50(batch int) *graph.Builder {
	b := graph.New()
	x, y := b.Input("image", npu.F32, batch, 3, 224, 224), b.Input("label", npu.I32, batch)
	loss, count := b.CrossEntropy(resnet.Build(b, x, resnet.Config{Depth: 50}), y, graph.Smoothing(0.1))
	b.Loss(loss)
	b.Output("count", count)
	return b
}

// llama7B is a training step of Llama 2 with 7 billion parameters.
func llama7B(batch, seq int) *graph.Builder {
	b := graph.New()
	c := llama.Config{Dim: 4096, Hidden: 11008, Layers: 32, Heads: 32, KVHeads: 32, Vocab: 32000, Context: 4096, Theta: 1e4, NormEps: 1e-5, BOS: -1, EOS: -1}
	loss, count := c.Loss(b, llama.Batch{Tokens: b.Input("tokens", npu.I32, batch, seq)}, b.Input("targets", npu.I32, batch, seq), llama.Weights{})
	b.Loss(loss)
	b.Output("count", count)
	return b
}

// TestNumberOfCalls: the host enqueues them one by one, so their number is a speed.
func TestNumberOfCalls(t *testing.T) {
	s := launches(t, resnet50(2), version(9, 0, lower.A2), plan.Options{Compute: npu.BF16})
	if s.calls > 550 {
		t.Errorf("ResNet50 takes %d calls a step", s.calls)
	}
	l := launches(t, llama7B(1, 4096), version(9, 0, lower.A3), plan.Options{Compute: npu.BF16})
	if l.calls > 2200 {
		t.Errorf("Llama 7B takes %d calls a step", l.calls)
	}
}
