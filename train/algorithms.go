package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// Values of Config.ConvAlgorithm.
const (
	AutoConv     = "auto"
	DirectConv   = "direct"
	WinogradConv = "winograd"
)

var convAlgorithms = []string{AutoConv, DirectConv, WinogradConv}

// kernelChoice is how the network is computed where the device has a choice. Rank 0 decides, and all take it.
type kernelChoice struct {
	tune.Choices
	Made     bool         `json:"made"` // checkpoints keep it; false if the configuration says direct
	Why      string       `json:"why"`
	Products npu.Products `json:"products,omitempty"` // of bf16, see products.go; "": there is no choice
}

// kept is what a checkpoint keeps: nothing where the algorithms are direct by the configuration, and products had no choice.
func (k kernelChoice) kept() *checkpoint.Kernels {
	if !k.Made && k.Products == "" {
		return nil
	}
	return &checkpoint.Kernels{Algorithms: k.Algorithms, Products: string(k.Products)}
}

// chooseKernels decides which algorithms the networks use, and how products of bf16 are computed: as the configuration says, as in the checkpoint that the
// run resumes from, so that it continues bit by bit, or the fastest ones. It precedes compilation.
func (t *Trainer) chooseKernels(ctx context.Context, graphs ...*plan.Graph) error {
	convolve := slices.ContainsFunc(graphs, convolves)
	if !convolve && t.cfg.Compute != npu.BF16 {
		return nil
	}
	var mine []byte
	if t.comm.Rank() == 0 {
		products, err := t.decideProducts(ctx) // layouts, and so algorithms, depend on it
		var k kernelChoice
		if err == nil {
			err = t.useProducts(products)
		}
		if err == nil && convolve {
			k, err = t.decideKernels(ctx, graphs)
		}
		if k.Products = products; err == nil {
			mine, err = json.Marshal(k)
		}
		if err != nil {
			return err
		}
	}
	text, err := t.share(ctx, mine)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.conv); err != nil {
		return fmt.Errorf("train: rank %d: the algorithms of rank 0: %w", t.comm.Rank(), err)
	}
	if err := t.useProducts(t.conv.Products); err != nil {
		return err
	}
	if t.comm.Rank() == 0 && t.conv.Why != "" && !t.planning {
		slog.Info("convolutions: " + t.conv.Why)
	}
	return nil
}

// convolves reports whether a network has convolutions. The others need no agreement.
func convolves(g *plan.Graph) bool {
	return slices.ContainsFunc(g.Calls, func(c plan.Call) bool { return c.Kind == npu.Conv2D })
}

// decideKernels is rank 0's choice.
func (t *Trainer) decideKernels(ctx context.Context, graphs []*plan.Graph) (k kernelChoice, err error) {
	if t.cfg.ConvAlgorithm == DirectConv { // told all the same: ranks with other settings would not know
		return k, nil
	}
	k.Made = true
	wanted := t.cfg.ConvAlgorithm == WinogradConv
	var was *checkpoint.Kernels
	var name string
	found := false
	if !wanted {
		if was, name, found, err = t.earlierKernels(ctx); err != nil {
			return k, err
		}
		if was != nil && len(was.Algorithms) == 0 { // it has products alone
			was = nil
		}
	}
	var all []npu.Op
	if _, several := t.dev.(npu.Algorithmic); several || was != nil { // otherwise there is nothing to choose, or to drop
		if all, err = t.convolutions(graphs); err != nil {
			return k, err
		}
	}
	ops := slices.DeleteFunc(slices.Clone(all), func(op npu.Op) bool { return len(npu.Algorithms(t.dev, op)) < 2 })
	if wanted {
		k.Choices = tune.Forced(t.dev, ops, WinogradConv)
		k.Why = or(k.Sentence(), "direct: "+t.dev.Info().Name+" has no other algorithm for those of this model")
		return k, nil
	}
	if found && was == nil { // it was trained by the direct algorithm
		k.Choices.Algorithms = direct(ops)
		return k.says("direct, as in the checkpoint "+name, len(ops) > 0), nil
	}
	if found {
		k.Choices = tune.Choices{Algorithms: maps.Clone(was.Algorithms)}
		if gone := k.Without(t.dev, all); len(gone) > 0 {
			slog.Warn(fmt.Sprintf("this machine, or this version, lacks the algorithm that the checkpoint %s has for %d convolutions: the run continues with %s, and "+
				"losses agree to rounding, not bit by bit", name, len(gone), k.Only(gone).Sentence()))
		}
	}
	if found {
		k.keepDirect(t.dev, ops)
	}
	ops = slices.DeleteFunc(ops, func(op npu.Op) bool { _, known := k.Algorithms[tune.Key(op)]; return known })
	if found && len(ops) == 0 {
		return k.says("as in the checkpoint "+name+": "+k.Sentence(), len(k.Algorithms) > 0), nil
	}
	if t.planning {
		t.recall(&k, ops)
		return k, nil
	}
	return k, t.fastest(ctx, &k, ops)
}

// keepDirect keeps the direct algorithm for the ops of a checkpoint that an earlier version has written, which had no other for them, so that its runs continue
// bit by bit: those that have npu.Pairs alone beside it, unless the checkpoint names that.
func (k *kernelChoice) keepDirect(dev npu.Device, ops []npu.Op) {
	if slices.Contains(slices.Collect(maps.Values(k.Algorithms)), npu.Pairs) {
		return
	}
	for _, op := range ops {
		key := tune.Key(op)
		if _, known := k.Algorithms[key]; !known && slices.Equal(npu.Algorithms(dev, op), []string{npu.Direct, npu.Pairs}) {
			if k.Algorithms == nil {
				k.Algorithms = map[string]string{}
			}
			k.Algorithms[key] = npu.Direct
		}
	}
}

// recall adds the algorithms that are known to be the fastest ones on this machine. A plan shows these, and does not measure the others.
func (t *Trainer) recall(k *kernelChoice, ops []npu.Op) {
	c, unknown := t.tuner.Known(t.dev, ops)
	if k.Algorithms == nil {
		k.Algorithms = map[string]string{}
	}
	maps.Copy(k.Algorithms, c.Algorithms)
	switch k.Why = k.Sentence(); {
	case unknown > 0 && k.Why == "":
		k.Why = fmt.Sprintf("direct in this plan; the first run on this machine will measure the fastest algorithm for %d", unknown)
	case unknown > 0:
		k.Why += fmt.Sprintf("; direct in this plan for %d more, for which the first run will measure the fastest algorithm", unknown)
	}
}

// says adds the reason of a choice, if there was one.
func (k kernelChoice) says(why string, choice bool) kernelChoice {
	if choice {
		k.Why = why
	}
	return k
}

// fastest adds the algorithms that were measured to be the fastest ones on this machine.
func (t *Trainer) fastest(ctx context.Context, k *kernelChoice, ops []npu.Op) error {
	tuner := t.tuner
	tuner.Say = func(s string) { slog.Info(s) }
	c, rep, err := tuner.Choose(ctx, t.dev, t.stream, ops)
	if err != nil {
		return fmt.Errorf("train: %w\nhint: train.conv_algorithm = %q measures nothing", err, DirectConv)
	}
	if k.Algorithms == nil {
		k.Algorithms = map[string]string{}
	}
	maps.Copy(k.Algorithms, c.Algorithms)
	if rep.Damaged != nil {
		slog.Warn("what was measured on this machine before cannot be read, and is measured again", "reason", rep.Damaged)
	}
	switch {
	case rep.Lost != nil:
		n := 0
		for key, a := range direct(ops) { // also for runs that resume from this one's checkpoints
			if _, known := k.Algorithms[key]; !known {
				k.Algorithms[key] = a
				n++
			}
		}
		slog.Warn(fmt.Sprintf("%d convolutions use the direct algorithm, since the result of a measurement cannot be kept\n"+
			"hint: set XDG_CACHE_HOME to a folder that can be written, or train.conv_algorithm to winograd", n), "reason", rep.Lost)
	case rep.Measured > 0:
		k.Why = fmt.Sprintf("%s, by measurement (%v)", k.Sentence(), rep.Took.Round(10*time.Millisecond))
	default:
		k.Why = k.Sentence()
	}
	return nil
}

// direct is the direct algorithm for each op.
func direct(ops []npu.Op) map[string]string {
	m := map[string]string{}
	for _, op := range ops {
		m[tune.Key(op)] = npu.Direct
	}
	return m
}

// earlierKernels returns what the checkpoint from which the run starts has on algorithms, and its name; nil: nothing; not found: there is no checkpoint.
func (t *Trainer) earlierKernels(ctx context.Context) (was *checkpoint.Kernels, name string, found bool, err error) {
	if t.planning {
		return t.plannedKernels(ctx)
	}
	ck, err := t.peek(ctx)
	if err != nil {
		return nil, "", false, err
	}
	if ck != nil {
		return ck.State.Kernels, ck.Name, true, nil
	}
	if t.evaluating && t.cfg.InitFrom != "" { // as in the run that made it
		from, _ := checkpoint.Resolve(t.cfg.InitFrom)
		st, err := checkpoint.New(t.pulse.Watch(t.disk), filepath.Dir(from), t.cfg.KeepLast).State(filepath.Base(from))
		return st.Kernels, filepath.Base(from), err == nil, nil
	}
	return nil, "", false, nil
}

// plannedKernels is earlierKernels for a plan: it believes the newest checkpoint of the run whose state can be read, without verifying gigabytes of weights.
func (t *Trainer) plannedKernels(ctx context.Context) (was *checkpoint.Kernels, name string, found bool, err error) {
	from, single := "", false
	if t.cfg.ResumeFrom != "" {
		from, single = checkpoint.Resolve(t.cfg.ResumeFrom)
	}
	switch {
	case single:
		st, err := checkpoint.New(t.disk, filepath.Dir(from), t.cfg.KeepLast).State(filepath.Base(from))
		return st.Kernels, filepath.Base(from), err == nil, launch.WithCode(launch.ExitNoInput, err)
	case from == "" && t.cfg.Resume:
		from = t.cfg.SaveDir
	}
	if from == "" || !exists(from) {
		return nil, "", false, nil
	}
	store := checkpoint.New(t.disk, from, t.cfg.KeepLast)
	infos, err := store.List(ctx)
	for _, in := range infos {
		if in.Err != nil {
			continue
		}
		if st, err := store.State(in.Name); err == nil {
			return st.Kernels, in.Name, true, nil
		}
	}
	return nil, "", false, err
}

// convolutions lists those of the networks, with the layouts that they have without a choice.
func (t *Trainer) convolutions(graphs []*plan.Graph) (ops []npu.Op, err error) {
	for i, g := range graphs {
		o := t.planOptions()
		if i > 0 {
			o = graph.Options{Compute: o.Compute}
		}
		p, err := plan.Build(g, t.dev, o)
		if _, lacks := errors.AsType[*plan.Lacking](err); lacks {
			continue // Compile reports it
		}
		if err != nil {
			return nil, err
		}
		for _, s := range p.Steps {
			if s.Host == nil && strings.HasPrefix(s.Op.Kind, npu.Conv2D) {
				ops = append(ops, s.Op)
			}
		}
	}
	return ops, nil
}

// algorithm is graph.Options.Algorithm; nil where nothing was chosen.
func (k kernelChoice) algorithm() func(npu.Op) string {
	for _, a := range k.Algorithms {
		if a != npu.Direct {
			return k.Algorithm
		}
	}
	return nil
}

// others counts the convolutions that a checkpoint's run has computed by another algorithm.
func (k kernelChoice) others(was *checkpoint.Kernels) (n int) {
	if was == nil {
		was = &checkpoint.Kernels{}
	}
	for key := range union(was.Algorithms, k.Algorithms) {
		if was.Algorithms[key] != k.Algorithms[key] {
			n++
		}
	}
	return n
}

// union has the keys of both.
func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// checkConvAlgorithm checks the configuration.
func (c *Config) checkConvAlgorithm(need func(bool, string, ...any)) {
	need(slices.Contains(convAlgorithms, c.ConvAlgorithm), "unknown algorithm of convolutions %q\nhint: use one of %s", c.ConvAlgorithm,
		strings.Join(convAlgorithms, ", "))
}
