package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// emit sends an event to the sinks. They report their own faults; a failing sink does not end the training.
func (t *Trainer) emit(e telemetry.Event) { _ = t.bus.Emit(e) }

// mfu is the utilisation of a step. A value above 1 shows that the peak is too low, because the machine was busy when it was measured. The speed of
// that step then becomes the peak, and the log reports it once.
func (t *Trainer) mfu(own telemetry.Value) telemetry.Value {
	v := t.flops.MFU(own, t.peak)
	if !v.OK || v.X <= 1 {
		return v
	}
	was := t.peak
	t.peak = v.X * was
	if !t.raised {
		t.raised = true
		what, do := "the peak measured at the start", "set log.peak_tflops to what the processor can do"
		if t.cfg.PeakFLOPS > 0 {
			what, do = "log.peak_tflops", "raise log.peak_tflops"
		}
		t.emit(telemetry.Warning{Step: int64(t.step), Text: fmt.Sprintf("%s, %.4g TFLOP/s per rank, is too low: this step reached %.4g; "+
			"mfu was overestimated so far, and is now relative to the fastest step (%s to correct it)", what, was/1e12, t.peak/1e12, do)})
	}
	return telemetry.Known(1)
}

func (t *Trainer) emitStart() {
	t.tellKernels()
	fwd, bwd := t.train.prog.Plan().FLOPs()
	items := t.train.net.items
	t.flops = telemetry.PlanFLOPs(float64(fwd+bwd), t.cfg.Batch*items.perSample())
	if t.cfg.FLOPs != nil {
		t.flops = *t.cfg.FLOPs
	}
	host, _ := os.Hostname()
	info := t.dev.Info()
	var params int64
	for _, p := range t.train.net.b.Params() {
		params += p.Shape.Elems()
	}
	facts := []telemetry.Fact{
		{Key: "device", Value: info.Name + " (" + info.Detail + ")"},
		{Key: "model", Value: fmt.Sprintf("%s parameters, activations in %v%s", amount.Count(params), t.cfg.Compute,
			widened(info, t.cfg.Compute))},
		{Key: "data", Value: fmt.Sprintf("%s, %s samples", t.cfg.Data.Name(), amount.Count(t.cfg.Data.Len()))},
		{Key: "batch", Value: fmt.Sprintf("%s%d = %d per rank × %d accumulated × %d ranks over %s", batchOf(items, t.globalBatch()), t.globalBatch(),
			t.cfg.Batch, t.cfg.Accumulate, t.comm.Size(), t.data.Transport())},
		{Key: "steps", Value: fmt.Sprintf("%s, %s per epoch", amount.Count(t.total), amount.Count(t.perEpoch))},
		{Key: "optimizer", Value: t.cfg.optimText()},
		{Key: "buckets", Value: fmt.Sprintf("%d, %s", len(t.eng.Buckets()), amount.Bytes(t.eng.Plan().Bytes))},
		{Key: "memory", Value: amount.Bytes(t.planned()) + " planned"},
		{Key: "started in", Value: time.Since(t.began).Round(time.Millisecond).String()},
	}
	facts = append(facts, t.forecast()...)
	t.emit(telemetry.RunStart{
		Name: t.cfg.Name, Version: Version(), Step: int64(t.step), Host: host, Recipe: t.cfg.RecipeText,
		Identity: telemetry.Identity{Node: t.cfg.Node, Rank: t.comm.Rank(), World: t.comm.Size()},
		Facts:    append(facts, t.flops.Facts(t.peak)...),
	})
	t.warnSlow()
	t.warnLarge()
}

// Of a tensor of more numbers the log has the name and the shape.
const (
	loggedOfSteps = 1 << 10 // some kilobytes a step
	loggedOfEvals = 1 << 16
)

// warnLarge names the tensors whose values the log leaves out.
func (t *Trainer) warnLarge() {
	if t.comm.Rank() != 0 {
		return
	}
	tell := func(p *pass, of string, most int) {
		if p == nil {
			return
		}
		if names := p.missing(most); len(names) > 0 {
			t.emit(telemetry.Warning{Text: fmt.Sprintf("the log of %s leaves out the values of %s; it has those of tensors of up to %s numbers; "+
				"train.Result and OnStep have them", of, strings.Join(names, ", "), amount.Count(most))})
		}
	}
	tell(t.train, "steps", loggedOfSteps)
	tell(t.eval, "evaluations", loggedOfEvals)
}

// widened says that kernels compute in another dtype than that of the activations, if they do.
func widened(info npu.Info, compute npu.DType) string {
	w, ok := info.Widened[compute]
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (products in %v on this processor)", w)
}

// warnSlow reports the large ops of the run for which the device has no fast kernel.
func (t *Trainer) warnSlow() {
	slow := t.dev.Info().Slow
	if len(slow) == 0 || t.comm.Rank() != 0 {
		return
	}
	t.emit(telemetry.Warning{Text: fmt.Sprintf(
		"%d large operations have no fast kernel on this device and take hundreds of times longer, for example %s", len(slow), slow[0])})
}

// batchOf returns how many items a global batch has, if the items are not its samples.
func batchOf(i Items, samples int) string {
	if i.perSample() == 1 {
		return ""
	}
	return fmt.Sprintf("%d %s in ", samples*i.perSample(), i.name())
}

func (t *Trainer) epoch() telemetry.Value {
	return telemetry.Known(float64(t.at.Epoch) + float64(t.at.Consumed)/float64(max(1, t.cfg.Data.Len())))
}

func (t *Trainer) emitStep(r report) {
	rate := r.count / r.total.Seconds()
	t.window.Add(rate)
	own := telemetry.Known(rate / float64(t.comm.Size()))
	now, _ := telemetry.Memory()
	e := telemetry.Step{
		Step: int64(t.step), Total: int64(t.total), Epoch: t.epoch(), Loss: telemetry.Known(r.loss), LR: telemetry.Known(r.lr), Skipped: r.skipped,
		Throughput: telemetry.Known(rate), Unit: t.train.net.items.rate(), Took: telemetry.Seconds(r.total), Compute: telemetry.Seconds(r.compute),
		Comm: telemetry.Seconds(r.comm.Transfer), Wait: telemetry.Seconds(r.exposed), Data: telemetry.Seconds(r.data),
		Util: telemetry.Known(min(1, r.busy.Seconds()/r.total.Seconds())), MFU: t.mfu(own), Memory: now,
	}
	e.Metrics, e.Tensors = t.train.logged(loggedOfSteps)
	e.Metrics = append(e.Metrics, t.codedMetrics(r.comm.Coded)...)
	t.warnResidual(r.comm.Coded)
	t.gauge(&e)
	if !math.IsNaN(r.norm) {
		e.Norm = telemetry.Known(r.norm)
	}
	if t.cfg.scales() {
		e.Scale = telemetry.Known(r.scale)
	}
	t.emit(e)
	t.measure(r)
}

// gauge takes what a device tells of itself: its own measure of how busy it is, and its own memory instead of the process's.
func (t *Trainer) gauge(e *telemetry.Step) {
	if u, ok := t.dev.(npu.Utilization); ok {
		if percent, ok := u.Utilization(); ok {
			e.Util = telemetry.Known(percent / 100)
		}
	}
	if m, ok := t.dev.(npu.MemoryUse); ok {
		e.Memory = telemetry.Value{} // the process's would be taken for the device's
		if n, ok := m.MemoryUse(); ok {
			t.most = max(t.most, float64(n))
			e.Memory = telemetry.Known(float64(n))
		}
	}
}

func (t *Trainer) emitEval(v map[string]float64, best bool, took time.Duration) {
	e := telemetry.Eval{
		Best: best,
		Step: int64(t.step), Epoch: t.epoch(), Loss: telemetry.Known(v["loss"]), Items: int64(v["items"]), Of: int64(t.cfg.Eval.Len()), Took: telemetry.Seconds(took),
	}
	if items := t.eval.net.items; items.perSample() > 1 {
		e.Of, e.Unit = 0, items.name()
	}
	if p, ok := v[perplexity]; ok {
		e.Metrics = append(e.Metrics, telemetry.Metric{Name: perplexity, Value: telemetry.Known(p)})
	}
	m, tensors := t.eval.logged(loggedOfEvals)
	e.Metrics, e.Tensors = append(e.Metrics, m...), tensors
	t.emit(e)
}

func (t *Trainer) emitSaved(s checkpoint.Saved) {
	t.emit(telemetry.Checkpoint{Step: int64(t.step), Path: s.Path, Bytes: s.Bytes, Took: telemetry.Seconds(s.Took), Removed: s.Removed})
	if s.Warning != nil {
		t.emit(telemetry.Warning{Step: int64(t.step), Text: s.Warning.Error()})
	}
}

func (t *Trainer) emitEnd(err error) {
	if t.bus == nil {
		return
	}
	_, peak := telemetry.Memory()
	if t.most > 0 {
		peak = telemetry.Known(t.most)
	}
	unit := ""
	if t.train != nil {
		unit = t.train.net.items.rate()
	}
	e := telemetry.RunEnd{Unit: unit, Step: int64(t.step), Reason: "done",
		Took: telemetry.Seconds(time.Since(t.began)), Throughput: t.window.Median(), PeakMemory: peak}
	var stop *StopError
	switch {
	case err == nil && t.early != "":
		e.Reason = t.early
	case errors.As(err, &stop):
		e.Reason = stop.what()
	case err != nil:
		e.Reason, e.Error = "failed", err.Error()
	}
	t.emit(e)
}

// spans turns what the engine waited for into bars of a trace.
func (t *Trainer) spans(s ddp.Span) {
	name := s.What
	if s.Bucket >= 0 {
		name = fmt.Sprintf("%s bucket %d", s.What, s.Bucket)
	}
	track := "comm"
	switch s.What {
	case "wait":
		track = "host"
	case "compute":
		track = "compute"
	case "transfer":
		track = "comm of the device"
	}
	t.emit(telemetry.Span{Name: name, Cat: s.What, Track: track, Begin: s.Begin, Dur: s.End.Sub(s.Begin)})
}

// planned is the memory that this rank will hold, as Summarise predicts it.
func (t *Trainer) planned() int64 {
	others := int64(t.cfg.LocalSize-1) * t.eng.Plan().Bytes // shared, but counted in each rank's resident set
	hosts, each := t.eng.CodecHosts()
	codec := t.compressed(t.cfg.Compress.Codec, t.eng.Plan(), hosts, each)
	return codec.Residuals + codec.Buffers + t.store.bytes + t.eng.Plan().Bytes + others + t.opt.Bytes() + t.scratch.Bytes() + program
}

// tellKernels logs every kernel of the training plan at debug level, with the device's choices, to help find out why a run is slow.
func (t *Trainer) tellKernels() {
	if !slog.Default().Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	var b strings.Builder
	if err := t.train.prog.Write(&b); err != nil {
		slog.Debug("the plan cannot be listed", "reason", err)
		return
	}
	for line := range strings.Lines(b.String()) {
		slog.Debug(strings.TrimRight(line, "\n"))
	}
}
