package graph

import (
	"errors"
	"fmt"
	"io"

	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// Options steer Compile; the zero value computes in float32. See plan.Options.
type Options = plan.Options

// Program is a model compiled for a device: a plan, a prepared kernel for each step, and, after Bind, memory. It is used by
// one goroutine. The order is Compile, Group (optional), Bind, Run as often as wanted, Close.
type Program struct {
	dev     npu.Device
	plan    *plan.Plan
	kernels []npu.Kernel          // by step; nil for host steps
	known   map[string]npu.Kernel // by op
	adders  []npu.Kernel          // by weight: adds a staged gradient to its memory; nil where there is none
	owned   []npu.Kernel
	beside  int64 // the largest workspace of an adder, behind the arena
	groups  [][]int

	bufs     []npu.Buffer
	ptr      []npu.Ptr // by tensor; in-arena gradients are found through stage
	stage    []npu.Ptr // by weight
	write    []segment
	add      []segment
	once     []npu.Launch // see Prepare
	bound    bool
	prepared bool
	weightOf map[plan.ID]int
}

// segment is a run of launches up to a point where the host has something to do.
type segment struct {
	batch []npu.Launch
	host  func() error // enqueued on the stream after the batch, or nil
	ready []int        // groups whose gradients are complete then
}

// Compile plans the model that b holds and prepares every kernel. b must be complete (Grad called, where training); a sticky error
// of b is returned as it is.
func Compile(b *Builder, dev npu.Device, o Options) (*Program, error) {
	g, err := b.Lower()
	if err != nil {
		return nil, err
	}
	return CompileGraph(g, dev, o)
}

// CompileGraph is Compile for a graph that was lowered already.
func CompileGraph(g *plan.Graph, dev npu.Device, o Options) (*Program, error) {
	pl, err := plan.Build(g, dev, o)
	if l, ok := errors.AsType[*plan.Lacking](err); ok {
		return nil, fmt.Errorf("graph: device %s has %w", dev.Info().Name, l)
	}
	if err != nil {
		return nil, err
	}
	p := &Program{dev: dev, plan: pl, weightOf: map[plan.ID]int{}, known: map[string]npu.Kernel{}}
	if err := p.compileSteps(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.adders = make([]npu.Kernel, len(pl.Weights))
	for i, w := range pl.Weights {
		if w.Grad == plan.None {
			continue
		}
		p.weightOf[w.Grad] = i
		if !o.Accumulate {
			continue
		}
		// Over memory as it lies: a device need not add in every layout that its convolutions use. Padding is zero on both sides.
		t := pl.Tensors[w.Grad]
		d := npu.D(t.Desc.DType, int(t.Bytes/int64(t.Desc.DType.Size())))
		op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{d, d}, Out: []npu.Desc{d}}
		if p.adders[i], err = p.compile(op, w.Name); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.beside = max(p.beside, p.adders[i].Workspace())
	}
	pl.Place()
	return p, nil
}

// compile prepares a kernel, once for equal ops.
func (p *Program) compile(op npu.Op, name string) (npu.Kernel, error) {
	key := op.String()
	if k, ok := p.known[key]; ok {
		return k, nil
	}
	k, err := p.dev.Compile(op)
	if err != nil {
		return nil, fmt.Errorf("graph: compile %s of %q for %s: %w", op.Kind, name, p.dev.Info().Name, err)
	}
	p.known[key] = k
	p.owned = append(p.owned, k)
	return k, nil
}

// compileSteps prepares the kernels of the plan, which have their workspaces.
func (p *Program) compileSteps() (err error) {
	p.kernels = make([]npu.Kernel, len(p.plan.Steps))
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		if s.Host != nil {
			err = p.hostStep(s)
		} else if p.kernels[i], err = p.compile(s.Op, s.Name); err == nil {
			s.Work = p.kernels[i].Workspace()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Fit limits the memory of Scratch to most bytes, by recomputing cheap results of the forward pass in the backward pass (see plan.Plan.Fit): as few as it
// takes, or as agree says. The numbers that the program computes stay the same, bit by bit. It returns what was chosen, or an error that wraps a
// *plan.TooSmall. Call it before Group and Bind.
func (p *Program) Fit(most int64, agree func(n int) (int, error)) (*plan.Fitted, error) {
	if p.bound || p.groups != nil {
		return nil, errors.New("graph: Fit after Group or Bind")
	}
	beside := p.Scratch() - p.plan.Arena
	pl, fitted, err := p.plan.Fit(p.dev, most-beside, func(op npu.Op) (int64, error) {
		k, err := p.compile(op, "a second "+op.Kind)
		if err != nil {
			return 0, err
		}
		return k.Workspace(), nil
	}, agree)
	if err != nil {
		return fitted, fmt.Errorf("graph: %w", err)
	}
	p.plan = pl
	return fitted, p.compileSteps()
}

// Workspaces places another plan for the same device with the workspaces of the kernels that this program has too, so that both arenas can be compared.
func (p *Program) Workspaces(other *plan.Plan) {
	for i := range other.Steps {
		if k, ok := p.known[other.Steps[i].Op.String()]; ok {
			other.Steps[i].Work = k.Workspace()
		}
	}
	other.Place()
}

// Plan is the plan behind the program.
func (p *Program) Plan() *plan.Plan { return p.plan }

// Impl names the implementation of a step's kernel; "host" for a step that runs on the host.
func (p *Program) Impl(step int) string {
	if p.kernels[step] == nil {
		return "host"
	}
	return p.kernels[step].Impl()
}

// Weight describes parameter i, in the order of declaration. Elems and Bytes count its layout's padding too.
type Weight struct {
	Name  string
	Desc  npu.Desc // with the layout that weight, gradient and optimizer state share
	Bytes int64
	Elems int64
	Ready int  // step after which the gradient is complete; smaller is earlier
	Grad  bool // false: the loss does not depend on it, or there is no backward pass
}

// Weights lists the parameters.
func (p *Program) Weights() []Weight {
	out := make([]Weight, len(p.plan.Weights))
	for i, w := range p.plan.Weights {
		t := p.plan.Tensors[w.Value]
		out[i] = Weight{w.Name, t.Desc, t.Bytes, t.Bytes / int64(t.Desc.DType.Size()), w.Ready, w.Grad != plan.None}
	}
	return out
}

// States lists the running statistics and other state by name.
func (p *Program) States() []plan.Tensor {
	out := make([]plan.Tensor, len(p.plan.States))
	for i, id := range p.plan.States {
		out[i] = p.plan.Tensors[id]
	}
	return out
}

// Layouts are the layouts that the parameters ended up in, to compile a second program (evaluation) over the same memory.
func (p *Program) Layouts() map[string]npu.Layout {
	m := map[string]npu.Layout{}
	for i := range p.plan.Tensors {
		if t := &p.plan.Tensors[i]; t.Role == plan.Param {
			m[t.Name] = t.Desc.Layout
		}
	}
	return m
}

// Scratch is what the program needs besides weights, gradients, states, inputs and outputs: temporaries and workspaces, in bytes. Programs that
// never run at the same time may share it.
func (p *Program) Scratch() int64 { return p.plan.Arena + p.beside + plan.Align }

// Group says at which points Run reports back: group k is complete once the gradients of all its weights (indices into Weights) are. Call it before Bind.
func (p *Program) Group(groups [][]int) { p.groups = groups }

// Close releases kernels and the memory that the program allocated. Idempotent.
func (p *Program) Close() error {
	var errs []error
	for _, k := range p.owned {
		errs = append(errs, k.Close())
	}
	for _, b := range p.bufs {
		errs = append(errs, b.Free())
	}
	p.owned, p.bufs, p.bound = nil, nil, false
	return errors.Join(errs...)
}

// Write prints the plan with the implementation chosen for each step, then the groups of gradients (buckets) where Group made some, then totals.
func (p *Program) Write(w io.Writer) error {
	pl := p.plan
	for i := range pl.Steps {
		s := &pl.Steps[i]
		dir := "fwd"
		if s.Back {
			dir = "bwd"
		}
		out := ""
		for _, o := range s.Out {
			if o != plan.None {
				out = pl.Tensors[o].Desc.String()
				break
			}
		}
		if _, err := fmt.Fprintf(w, "%4d %s %-18s %-26s %9.2f MFLOP  %-34s %s\n", i, dir, s.Op.Kind, s.Name, float64(s.FLOPs())/1e6, out, p.Impl(i)); err != nil {
			return err
		}
	}
	for k, group := range p.groups {
		last, bytes := p.lastReady(group), int64(0)
		for _, i := range group {
			bytes += pl.Tensors[pl.Weights[i].Value].Bytes
		}
		if _, err := fmt.Fprintf(w, "bucket %d: %d gradients, %.2f MiB, complete after step %d\n", k, len(group), float64(bytes)/(1<<20), last); err != nil {
			return err
		}
	}
	fwd, bwd := pl.FLOPs()
	_, err := fmt.Fprintf(w, "%d steps, %.2f GFLOP forward, %.2f GFLOP backward, arena %.1f MiB, of which at most %.1f MiB are in use at one time\n",
		len(pl.Steps), float64(fwd)/1e9, float64(bwd)/1e9, float64(pl.Arena)/(1<<20), float64(pl.Live)/(1<<20))
	return err
}
