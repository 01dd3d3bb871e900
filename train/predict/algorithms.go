package predict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// algorithms says how convolutions are computed where the device has a choice: as in the training that made the checkpoint, and what it does not know by the
// algorithm that is the fastest one on this machine. That is measured once a machine, and kept where training keeps it (package tune).
type algorithms struct {
	setting string // train.AutoConv, DirectConv or WinogradConv
	tuner   tune.Tuner
	tune.Choices
}

func newAlgorithms(o *options, was *checkpoint.Kernels) algorithms {
	a := algorithms{setting: o.conv, tuner: o.tuner}
	a.Algorithms = map[string]string{}
	if was != nil && a.setting == train.AutoConv {
		maps.Copy(a.Algorithms, was.Algorithms)
	}
	return a
}

// bare is a convolution without what is done to its result. In a training the same convolution is followed by kernels that do that.
func bare(op npu.Op) npu.Op {
	if op.Kind != npu.Conv2D {
		return op
	}
	op = op.Clone()
	op.Attrs = op.Attrs.Clone()
	delete(op.Attrs, "relu")
	if op.Attrs.Bool("bias") {
		op.Attrs["bias"] = false // as package nn sets it
		op.In = op.In[:2]
	}
	return op
}

// find is the algorithm of an op, which may have taken in what was a kernel of its own in the training.
func (a *algorithms) find(op npu.Op) (name string, known bool) {
	if name, known = a.Algorithms[tune.Key(op)]; known {
		return name, true
	}
	name, known = a.Algorithms[tune.Key(bare(op))]
	return name, known
}

// choose is graph.Options.Algorithm.
func (a *algorithms) choose(op npu.Op) string {
	name, _ := a.find(op)
	return name
}

// decide decides for the convolutions of a network that have a choice and are not known. Their measurement runs on the stream.
func (a *algorithms) decide(g *plan.Graph, dev npu.Device, s npu.Stream, o graph.Options) error {
	if _, several := dev.(npu.Algorithmic); !several || a.setting == train.DirectConv {
		return nil
	}
	o.Algorithm, o.Layouts = nil, nil
	p, err := plan.Build(g, dev, o)
	if err != nil {
		if _, lacks := errors.AsType[*plan.Lacking](err); lacks {
			return nil // Compile reports it
		}
		return err
	}
	var ops []npu.Op
	for _, step := range p.Steps {
		if op := step.Op; step.Host == nil && op.Kind == npu.Conv2D {
			a.Without(dev, []npu.Op{op, bare(op)}) // direct, where the checkpoint comes from a machine with other algorithms
			if _, known := a.find(op); !known && len(npu.Algorithms(dev, op)) > 1 {
				ops = append(ops, bare(op))
			}
		}
	}
	if len(ops) == 0 {
		return nil
	}
	if a.setting == train.WinogradConv {
		maps.Copy(a.Algorithms, tune.Forced(dev, ops, train.WinogradConv).Algorithms)
		return nil
	}
	t := a.tuner
	t.Say = func(s string) { slog.Debug(s) }
	c, rep, err := t.Choose(context.Background(), dev, s, ops)
	if err != nil {
		return fmt.Errorf("predict: %w\nhint: direct convolutions need no measurement", err)
	}
	maps.Copy(a.Algorithms, c.Algorithms)
	if rep.Damaged != nil {
		slog.Warn("what was measured on this machine before cannot be read, and is measured again", "reason", rep.Damaged)
	}
	if rep.Lost != nil {
		slog.Debug("convolutions that were not measured before are direct, since the result of a measurement cannot be kept", "reason", rep.Lost)
	}
	return nil
}
