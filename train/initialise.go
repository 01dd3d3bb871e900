package train

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// initialise sets the initial weights and states: from a checkpoint to resume, from a file, or from the model's initialisers. Rank 0 alone reads files; its
// weights are then broadcast, so that they cannot differ.
func (t *Trainer) initialise(ctx context.Context) error {
	resumed, err := t.resume(ctx)
	if err != nil {
		return err
	}
	if !resumed {
		if err := t.start(ctx); err != nil {
			return err
		}
		if t.cfg.InitFrom != "" {
			if t.comm.Rank() == 0 {
				if err := t.initFrom(ctx, t.cfg.InitFrom); err != nil {
					return err
				}
			}
			if err := t.shareStates(ctx, t.statesOf(t.model())); err != nil {
				return err
			}
		}
	}
	if err := t.eng.Broadcast(ctx, t.named()...); err != nil || resumed && t.averaged {
		return err
	}
	return t.beginAverage(ctx)
}

// shareStates gives all ranks the running statistics of rank 0.
func (t *Trainer) shareStates(ctx context.Context, states []tensor) error {
	var named []ddp.Named
	for _, s := range states {
		n, err := t.dev.Bytes(s.desc)
		if err != nil {
			return err
		}
		named = append(named, ddp.Named{Name: s.name, Mem: comm.Mem{Ptr: s.at, Elems: n / 4, DType: npu.F32}})
	}
	return t.eng.Broadcast(ctx, named...)
}

// start fills weights and states from the model's initialisers.
func (t *Trainer) start(ctx context.Context) error {
	params, weights := t.train.net.b.Params(), t.train.prog.Weights()
	for i, w := range weights {
		if params[i].Name != w.Name {
			return fmt.Errorf("train: internal: parameter %d is %q in the model and %q in the plan", i, params[i].Name, w.Name)
		}
	}
	for at := 0; at < len(params); {
		values, err := t.fill(params[at:], at)
		if err != nil {
			return err
		}
		for k, v := range values {
			if t.direct(tensor{at: t.store.weights[at+k], desc: weights[at+k].Desc}) != nil {
				continue
			}
			if err := t.mover.In(ctx, t.store.weights[at+k], weights[at+k].Desc, floatBytes(v)); err != nil {
				return fmt.Errorf("train: initial value of %q: %w", params[at+k].Name, err)
			}
		}
		at += len(values)
	}
	value := map[string]float32{}
	for _, s := range t.train.net.b.States() {
		value[s.Name] = s.Value
	}
	for i, s := range t.train.prog.States() {
		v := make([]float32, s.Desc.Shape.Elems())
		for j := range v {
			v[j] = value[s.Name]
		}
		if err := t.mover.In(ctx, t.store.states[i], s.Desc, floatBytes(v)); err != nil {
			return fmt.Errorf("train: initial value of %q: %w", s.Name, err)
		}
	}
	return nil
}

// fillAtOnce is how many initial values are in memory together, unless one parameter has more.
const fillAtOnce = 8 << 20

// fill draws the initial values of params, from parameter first on, as many as fit, on all threads of this rank: each parameter has a generator of its own.
// Values that lie where the weights live, so that a large table does not exist twice, fit always.
func (t *Trainer) fill(params []*graph.Param, first int) ([][]float32, error) {
	weights := t.train.prog.Weights()
	var values [][]float32
	for n := int64(0); len(values) < len(params); {
		i := first + len(values)
		if v := t.direct(tensor{at: t.store.weights[i], desc: weights[i].Desc}); v != nil {
			values = append(values, v)
			continue
		}
		elems := params[len(values)].Shape.Elems()
		if n += elems; n > fillAtOnce && len(values) > 0 {
			break
		}
		values = append(values, make([]float32, elems))
	}
	var g errgroup.Group
	g.SetLimit(max(1, t.dev.Info().Threads))
	for k, v := range values {
		p := params[k]
		g.Go(func() error {
			if err := p.Init.Fill(v, p.Shape, t.cfg.Seed, p.Name); err != nil {
				return fmt.Errorf("train: initial value of %q: %w", p.Name, err)
			}
			return nil
		})
	}
	return values, g.Wait()
}

// direct is the memory of a tensor, where the host reaches it and its elements are float32 in plain order; otherwise nil.
func (t *Trainer) direct(x tensor) []float32 {
	h, n := x.at.Buf.Host(), x.desc.Shape.Elems()
	if h == nil || x.desc.Layout != npu.Plain || x.desc.DType != npu.F32 || n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&h[x.at.Off:][:4*n][0])), n)
}

// set lets read write the elements of a tensor, in plain order. The stream must be idle.
func (t *Trainer) set(ctx context.Context, x tensor, read func([]float32) error) error {
	if v := t.direct(x); v != nil {
		return read(v)
	}
	v := make([]float32, x.desc.Shape.Elems())
	if err := read(v); err != nil {
		return err
	}
	return t.mover.In(ctx, x.at, x.desc, floatBytes(v))
}

func floatBytes(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// tensor is a named tensor of the run on the device.
type tensor struct {
	name string
	at   npu.Ptr
	desc npu.Desc
}

// model lists weights and running statistics: what a model file holds.
func (t *Trainer) model() []tensor {
	var out []tensor
	for i, w := range t.train.prog.Weights() {
		out = append(out, tensor{w.Name, t.store.weights[i], w.Desc})
	}
	for i, s := range t.train.prog.States() {
		out = append(out, tensor{s.Name, t.store.states[i], s.Desc})
	}
	return out
}

// moments lists the optimizer's state. It has the shape and layout of the weights.
func (t *Trainer) moments() []tensor {
	desc := map[string]npu.Desc{}
	for _, w := range t.train.prog.Weights() {
		desc[w.Name] = w.Desc
	}
	var out []tensor
	for _, s := range t.opt.State() {
		out = append(out, tensor{s.Name(), s.Ptr, desc[s.Param]})
	}
	return out
}

// named lists everything that must be equal on all ranks: weights and optimizer state. Running statistics differ by design, because each rank has
// seen different samples.
func (t *Trainer) named() []ddp.Named {
	var out []ddp.Named
	for _, x := range slices.Concat(t.model()[:len(t.store.weights)], t.weightAverages(), t.moments()) {
		n, err := t.dev.Bytes(x.desc)
		if err != nil {
			continue
		}
		out = append(out, ddp.Named{Name: x.name, Mem: comm.Mem{Ptr: x.at, Elems: n / 4, DType: npu.F32}})
	}
	return out
}

// initFrom reads weights by name. With InitPartial, parameters that are missing or have another shape keep their initial values, and a warning names
// them.
func (t *Trainer) initFrom(ctx context.Context, path string) error {
	open := t.cfg.Weights
	if open == nil {
		open = OpenWeights
	}
	set, err := open(path)
	if err != nil {
		return launch.WithCode(launch.ExitNoInput, fmt.Errorf("train: initial weights: %w", err))
	}
	defer set.Close()
	names, model := set.Names(), t.model()
	f := fitting(model, names, set.Shape, t.cfg.InitIgnore)
	f.adapt(model, set.Shape, t.cfg.Adapt)
	partial := t.cfg.InitPartial && len(f.kept) < len(model)
	if faults := f.faults(partial); faults != "" {
		hint := "use weights of the same network; for a new classifier set init_partial"
		if len(f.surplus) > 0 {
			hint += "; to ignore tensors of the file, list them in init_ignore"
		}
		return t.misfit(path, names, faults, hint)
	}
	if err := t.checkInitClasses(path, len(f.kept) == 0); err != nil {
		return err
	}
	for _, x := range model {
		if slices.Contains(f.kept, x.name) {
			continue
		}
		values, err := f.readAdapted(set, x.name)
		if err == nil {
			err = t.set(ctx, x, func(v []float32) error {
				if values != nil {
					copy(v, values)
					return nil
				}
				return launch.WithCode(launch.ExitNoInput, set.Read(x.name, v))
			})
		}
		if err != nil {
			return fmt.Errorf("train: initial weights: %w", err)
		}
	}
	if len(f.kept) > 0 && t.comm.Rank() == 0 {
		slog.Warn("parameters missing from the initial weights start from the initialisers", "file", path, "parameters", strings.Join(shorten(f.kept, 12), " "))
	}
	t.sayIgnored(path, f.ignored)
	return nil
}

// sayIgnored logs the tensors of a file that are ignored because the configuration allows it.
func (t *Trainer) sayIgnored(file string, names []string) {
	if len(names) > 0 && t.comm.Rank() == 0 {
		slog.Warn("ignored tensors that the model does not have", "file", file, "count", len(names), "tensors", strings.Join(shorten(names, 12), " "))
	}
}

func shorten(s []string, n int) []string {
	if len(s) > n {
		return append(s[:n:n], fmt.Sprintf("and %d more", len(s)-n))
	}
	return s
}
