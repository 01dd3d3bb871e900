package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// Target is what planning must know of a device; npu.Device is one.
type Target interface {
	Has(kind string, attrs npu.Attrs) bool
	Choose(npu.Op) (npu.Op, error)
	Bytes(npu.Desc) (int64, error)
}

// Place says where a tensor's memory is.
type Place uint8

const (
	// Arena: at Offset in the program's one arena.
	Arena Place = iota
	// Bound memory belongs to the caller: inputs, parameters, gradients, states, outputs.
	Bound
)

// Tensor is a value with its layout and place.
type Tensor struct {
	Name   string
	Desc   npu.Desc
	Role   Role
	Bytes  int64
	Place  Place
	Offset int64 // in the arena; for a gradient: where it is staged when gradients accumulate
	First  int   // step that makes it (-1: before the run)
	Last   int   // last step that reads it (len(Steps): after the run)
	alias  ID    // the tensor that it is a reshape of, None
}

// Step is one kernel launch (or one host call) of the plan.
type Step struct {
	Op   npu.Op
	In   []ID // tensors
	Out  []ID // tensors, None where unwanted
	Name string
	Back bool
	Host func(in, out [][]byte) error
	// Work is the size of the workspace of the step's kernel in bytes, 0 until it is compiled; WorkAt is its place in the arena.
	Work, WorkAt int64
}

// FLOPs of the step.
func (s *Step) FLOPs() int64 {
	if s.Host != nil {
		return 0
	}
	k, err := op.Lookup(s.Op.Kind)
	if err != nil {
		return 0
	}
	if k.FLOPs != nil {
		return k.FLOPs(s.Op)
	}
	var n int64
	for _, d := range s.Op.Out {
		n = max(n, d.Shape.Elems())
	}
	return n
}

// Weight is a trained parameter in the plan.
type Weight struct {
	Name  string
	Value ID
	Grad  ID  // None for evaluation and for parameters that the loss does not reach
	Ready int // step after which the gradient is complete and no step of the pass reads it or the weight any more
}

// Plan is the result of planning: everything an executor needs but the kernels.
type Plan struct {
	Tensors []Tensor
	Steps   []Step
	Weights []Weight
	Inputs  []ID
	States  []ID
	Outputs []Output // Value indexes Tensors
	Arena   int64    // bytes of temporaries, and of workspaces where they are known (see Place)
	Live    int64    // the most of those bytes that are in use at one time: the lower bound of Arena
	// Once is how many steps, the first ones, only bring weights into the form that kernels want: with Options.Constant they need not run again.
	Once int
	// Compute is the dtype of activations.
	Compute npu.DType
	// Folds are the batch normalisations that convolutions took in, with Options.Fold: some parameters must then be filled with what Fold.Apply makes of them.
	Folds []Fold

	options   Options
	inherited []ID // tensors that became aliases of gradients (inherit)
}

// Options steer Build. The zero value is right for float32.
type Options struct {
	Compute npu.DType             // F32 (also for Invalid), BF16 or F16
	Layouts map[string]npu.Layout // of parameters, where another program has already decided
	// Accumulate reserves arena space to stage gradients, so that a run may add to gradient memory instead of overwriting it.
	Accumulate bool
	// Recompute keeps only what leaves a block of the model and computes the rest of it again in the backward pass.
	Recompute bool
	// Constant promises that weights do not change from run to run, so that what is made of them alone is made once and kept: for generation.
	Constant bool
	// Fold makes batch normalisations with fixed statistics part of the convolutions before them: for predictions. See Plan.Folds.
	Fold bool
	// Algorithm names the algorithm of an op (npu.AttrAlgorithm), which has no layouts yet; nil: the device's default everywhere.
	Algorithm func(npu.Op) string
	NoFuse    bool // for comparisons
	NoReuse   bool // gives every tensor its own memory, for tests
}

// Build plans a graph for a target: all stages in order. The graph is not changed.
func Build(g *Graph, t Target, o Options) (*Plan, error) {
	w := g.clone()
	if err := w.Check(); err != nil {
		return nil, err
	}
	bindStates(w)
	Prune(w)
	if o.Recompute {
		if err := Recompute(w); err != nil {
			return nil, err
		}
		Prune(w)
	}
	var folds []Fold
	if o.Fold {
		folds = fold(w, t.Has)
		Prune(w)
	}
	if !o.NoFuse {
		Fuse(w, t.Has)
		Prune(w)
	}
	if o.Compute == npu.Invalid {
		o.Compute = npu.F32
	}
	if o.Compute != npu.F32 {
		var err error
		if w, err = Mixed(w, o.Compute); err != nil {
			return nil, err
		}
	}
	if err := w.Check(); err != nil {
		return nil, fmt.Errorf("plan: internal: after rewriting: %w", err)
	}
	if err := lacking(w, t); err != nil {
		return nil, err
	}
	p, err := layout(w, t, o)
	if err != nil {
		return nil, err
	}
	p.Compute, p.options, p.Folds = o.Compute, o, folds
	if o.Constant {
		p.hoist()
	}
	if err := p.measure(t); err != nil {
		return nil, err
	}
	p.Place()
	return p, nil
}

func (g *Graph) clone() *Graph {
	c := *g
	c.Values = append([]Value{}, g.Values...)
	c.Calls = append([]Call{}, g.Calls...)
	for i := range c.Calls {
		c.Calls[i].In = append([]ID{}, c.Calls[i].In...)
		c.Calls[i].Out = append([]ID{}, c.Calls[i].Out...)
	}
	c.Trained = append([]Trained{}, g.Trained...)
	return &c
}

// bindStates makes the updated versions of running statistics the state values themselves.
func bindStates(g *Graph) {
	for i, c := range g.Calls {
		if c.Host != nil {
			continue
		}
		k, err := op.Lookup(c.Kind)
		if err != nil {
			continue
		}
		for _, s := range k.States(c.Attrs) {
			if out, in := s[0], s[1]; out < len(c.Out) && g.Values[c.In[in]].Role == State {
				g.Calls[i].Out[out] = c.In[in]
			}
		}
	}
}

// FLOPs of one run, forward and backward.
func (p *Plan) FLOPs() (fwd, bwd int64) {
	for i := range p.Steps {
		if p.Steps[i].Back {
			bwd += p.Steps[i].FLOPs()
		} else {
			fwd += p.Steps[i].FLOPs()
		}
	}
	return fwd, bwd
}

// Fingerprint is equal for equal plans: same ops in the same order on the same layouts, same parameters and states.
func (p *Plan) Fingerprint() string {
	h := sha256.New()
	for i := range p.Steps {
		fmt.Fprintln(h, p.Steps[i].Op, p.Steps[i].In, p.Steps[i].Out)
	}
	for _, q := range p.Weights {
		fmt.Fprintln(h, q.Name, p.Tensors[q.Value].Desc, q.Ready)
	}
	for _, s := range p.States {
		fmt.Fprintln(h, p.Tensors[s].Name, p.Tensors[s].Desc)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
