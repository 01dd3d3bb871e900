package train

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// Monitor says which result of an evaluation is compared with earlier ones, and what follows from that. The zero value watches the loss, for the log alone.
type Monitor struct {
	Metric   string  // "loss", "perplexity", or a metric of the model; "loss"
	Mode     string  // MonitorMin or MonitorMax; MonitorMin for loss and perplexity, MonitorMax for metrics
	MinDelta float64 // a result counts as better if it is better by more than this; 0
	// KeepBest keeps the checkpoint of the best evaluation, whatever Config.KeepLast says, and writes one if none is due. The file "best" in SaveDir names it.
	KeepBest bool
	// Patience ends the run, successfully, after so many evaluations in a row that were not better; 0: never.
	Patience int
	// Plateau lowers the learning rate when results stop improving; nil: never.
	Plateau *Plateau
}

// Plateau multiplies the learning rate by Gamma after Patience evaluations in a row that were not better than the best before them.
type Plateau struct {
	Patience int     // evaluations; at least 1
	Gamma    float64 // within 0…1
	MinRatio float64 // lowest rate as a part of what the schedule says
}

// The directions of Monitor.Mode.
const (
	MonitorMin = "min" // lower is better
	MonitorMax = "max" // higher is better
)

// metric is the name of the result that is compared.
func (m *Monitor) metric() string {
	if m.Metric == "" {
		return "loss"
	}
	return m.Metric
}

// lower reports whether lower is better.
func (m *Monitor) lower() bool {
	if m.Mode != "" {
		return m.Mode == MonitorMin
	}
	return m.metric() == "loss" || m.metric() == perplexity
}

// better reports whether v improves on was.
func (m *Monitor) better(v, was float64) bool {
	if m.lower() {
		return v < was-m.MinDelta
	}
	return v > was+m.MinDelta
}

// acts reports whether anything follows from an evaluation.
func (m *Monitor) acts() bool { return m.KeepBest || m.Patience > 0 || m.Plateau != nil }

// checkMonitor reports all faults of the monitor.
func (c *Config) checkMonitor(need func(ok bool, format string, a ...any)) {
	m := &c.Monitor
	need(m.Mode == "" || m.Mode == MonitorMin || m.Mode == MonitorMax, "the mode of the monitor must be min or max, got %q", m.Mode)
	need(m.MinDelta >= 0 && !math.IsInf(m.MinDelta, 0), "the least improvement must not be negative, got %g", m.MinDelta)
	need(m.Patience >= 0, "the patience must not be negative, got %d", m.Patience)
	need(c.Eval != nil || !m.acts(), "keeping the best checkpoint, stopping early and a plateau schedule require evaluations\nhint: use train.WithEval")
	need(!m.KeepBest || c.SaveDir != "", "keeping the best checkpoint requires a directory of checkpoints\nhint: use train.WithCheckpoints")
	need(m.Patience == 0 && m.Plateau == nil || c.Eval == nil || c.EvalEvery != 0,
		"stopping early and a plateau schedule require evaluations during the run\nhint: give train.WithEval an interval")
	if p := m.Plateau; p != nil {
		need(p.Patience >= 1, "the patience of the plateau schedule must be at least 1 evaluation, got %d", p.Patience)
		need(p.Gamma > 0 && p.Gamma < 1, "the factor of the plateau schedule must be between 0 and 1, got %g", p.Gamma)
		need(p.MinRatio >= 0 && p.MinRatio <= 1, "the lowest rate of the plateau schedule must be a part within 0…1, got %g", p.MinRatio)
	}
}

// checkMetric reports a metric that the evaluation does not have.
func (t *Trainer) checkMetric() error {
	if t.eval == nil || t.evaluating {
		return nil
	}
	have := []string{"loss"}
	if t.eval.net.items.Likelihood {
		have = append(have, perplexity)
	}
	have = append(have, t.eval.scalars...)
	name := t.cfg.Monitor.metric()
	if slices.Contains(t.eval.tensors, name) {
		return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: the result %q of the evaluation has the shape %v; only a number can be monitored\n"+
			"hint: derive a number from it with Outputs.Derived; there are %s", name, t.eval.shape(name), strings.Join(have, ", ")))
	}
	if !slices.Contains(have, name) {
		return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: the evaluation has no result %q to monitor\nhint: it has %s", name, strings.Join(have, ", ")))
	}
	return nil
}

// canJudge reports a result that cannot be compared. Losses and metrics are finite by now; a derived number need not be.
func (t *Trainer) canJudge(all Values) error {
	name := t.cfg.Monitor.metric()
	if v := all[name]; !t.evaluating && len(v.Values) == 1 && !finite(v.Item()) {
		return launch.WithCode(launch.ExitNumerics, fmt.Errorf("the monitored result %q is %g\n"+
			"hint: let its function in Outputs.Derived return a number, such as 0, for classes without samples", name, v.Item()))
	}
	return nil
}

// judge compares an evaluation with the best one so far. All ranks have the same results, so all judge the same.
func (t *Trainer) judge(out map[string]float64) (better bool) {
	m := &t.cfg.Monitor
	v, now := out[m.metric()], int64(t.step)
	b := t.best
	if b != nil && b.Metric != m.metric() {
		slog.Info("another result of the evaluation is monitored from now on", "was", b.Metric, "is", m.metric())
		b = nil
	}
	switch {
	case b == nil:
		drops := 0
		if t.best != nil { // the learning rate stays where it is
			drops = t.best.Drops
		}
		t.best, better = &checkpoint.Best{Metric: m.metric(), Value: v, Step: now, Drops: drops}, true
	case m.better(v, b.Value):
		b.Value, b.Step, b.Waited, b.Since, better = v, now, 0, 0, true
	default:
		b.Waited++
		b.Since++
		t.lower()
	}
	t.best.Last = now
	return better
}

// lower lowers the learning rate if results have not improved for long enough.
func (t *Trainer) lower() {
	p, b := t.cfg.Monitor.Plateau, t.best
	if p == nil || b.Since < p.Patience {
		return
	}
	b.Since = 0
	if was := p.factor(b.Drops); was <= p.MinRatio {
		return
	}
	b.Drops++
	if t.comm.Rank() == 0 {
		slog.Info("the learning rate is lowered", "step", t.step, "factor", p.factor(b.Drops), "because",
			fmt.Sprintf("%s has not improved on %.6g of step %d for %d evaluations", b.Metric, b.Value, b.Step, b.Waited))
	}
}

// factor is what the learning rate is multiplied by after a number of drops.
func (p *Plateau) factor(drops int) float64 {
	return max(math.Pow(p.Gamma, float64(drops)), p.MinRatio)
}

// lowered is the factor on the learning rate of the schedule.
func (t *Trainer) lowered() float64 {
	if p := t.cfg.Monitor.Plateau; p != nil && t.best != nil {
		return p.factor(t.best.Drops)
	}
	return 1
}

// keepBest gives the evaluation of the present step a checkpoint that rotation keeps, if it is better than the one that is kept. That need not be the best
// one: a disk that was full then may have room now.
func (t *Trainer) keepBest(ctx context.Context) error {
	m, b := &t.cfg.Monitor, t.best
	if !m.KeepBest || b == nil || t.evaluated != t.step {
		return nil
	}
	if v := t.lastEv[m.metric()]; b.KeptStep != int64(t.step) {
		if b.KeptStep > 0 && !m.better(v, b.Kept) {
			return nil
		}
		was, at := b.Kept, b.KeptStep
		b.Kept, b.KeptStep = v, int64(t.step)
		if t.saved != t.step {
			if err := t.save(ctx, false); err != nil {
				return err
			}
		}
		if t.saved != t.step { // which was reported
			b.Kept, b.KeptStep = was, at
			return nil
		}
	}
	if t.comm.Rank() == 0 && t.saved == t.step {
		t.unmarked = t.savedName
		t.markBest()
	}
	return nil
}

// markBest marks the checkpoint that rotation keeps, on rank 0. What fails is tried again before the next rotation.
func (t *Trainer) markBest() {
	if t.unmarked == "" {
		return
	}
	defer t.onDisk("marking the best checkpoint")()
	if err := t.saver.MarkBest(t.unmarked); err != nil {
		slog.Warn("the best checkpoint could not be marked; the next checkpoint tries again", "checkpoint", t.unmarked, "reason", err)
		return
	}
	t.unmarked = ""
}

// impatient reports whether the run ends early because its evaluations no longer improve.
func (t *Trainer) impatient() bool {
	n := t.cfg.Monitor.Patience
	return n > 0 && t.best != nil && t.best.Waited >= n
}

// endEarly ends a run that impatient has ended: its last step is saved, like that of any other.
func (t *Trainer) endEarly(ctx context.Context) error {
	b := t.best
	t.early = fmt.Sprintf("stopped early at step %d of %d: %s has not improved on %.6g of step %d for %d evaluations",
		t.step, t.total, b.Metric, b.Value, b.Step, b.Waited)
	if t.comm.Rank() == 0 {
		slog.Info(t.early)
	}
	if t.saver == nil || t.saved == t.step {
		return nil
	}
	if err := t.save(ctx, true); err != nil {
		return err
	}
	t.note(ctx)
	return nil
}

// resultsHere are the results of the evaluation of the present weights, for their checkpoint; nil: it is still to come.
func (t *Trainer) resultsHere() map[string]float64 {
	if t.evaluated != t.step {
		return nil
	}
	return t.lastEv
}

// arraysHere are those that are more than a number.
func (t *Trainer) arraysHere() map[string]checkpoint.Array {
	if t.eval == nil || t.evaluated != t.step {
		return nil
	}
	return t.eval.keep()
}

// judgeAgain takes the evaluation of the checkpoint that the run resumes from into account: it follows the checkpoint, which does not know what came of it.
func (t *Trainer) judgeAgain() {
	if _, ok := t.lastEv[t.cfg.Monitor.metric()]; ok && !t.evaluating && (t.best == nil || t.best.Last < int64(t.step)) {
		t.judge(t.lastEv)
	}
}
