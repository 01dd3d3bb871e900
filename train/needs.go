package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/internal/amount"
)

// MemoryItem is one use of memory, in bytes.
type MemoryItem struct {
	What   string `json:"what"`
	Bytes  int64  `json:"bytes"`
	Shared bool   `json:"shared,omitempty"` // exists once, mapped by all ranks of a machine
}

// Limit is what Config.MemoryLimit leads to.
type Limit struct {
	Bytes     int64      `json:"bytes"`         // the limit
	Before    int64      `json:"before"`        // activations and workspaces without it
	After     int64      `json:"after"`         // and with it
	Least     int64      `json:"least"`         // and with all recomputation that is cheap; Before, if the limit demands none
	Made      []MadeItem `json:"recomputed"`    // what is recomputed, by kind of op
	ExtraFLOP int64      `json:"extra_flop"`    // of a micro-batch
	ExtraTime float64    `json:"extra_seconds"` // of a step, as predicted; 0: the device's peak is not known
}

// MadeItem sums up what is recomputed of one kind of op.
type MadeItem struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// program is the resident memory of the binary, the kernel library with its generated code, and Go's heap: measured, and nearly the same for every
// network.
const program = 64 << 20

// scratch names the item that a limit of memory can change.
const scratch = "activations and workspace"

// private is the sum of what each rank has for itself.
func private(items []MemoryItem) (n int64) {
	for _, m := range items {
		if !m.Shared {
			n += m.Bytes
		}
	}
	return n
}

// needs lists the memory of a rank. buckets is the size of all gradients, perHost the number of ranks of its machine.
func (t *Trainer) needs(buckets int64, perHost int, codec compress.Cost) []MemoryItem {
	var frozen, states, batch int64
	for _, w := range t.train.prog.Weights() {
		if !w.Grad {
			frozen += w.Bytes
		}
	}
	for _, x := range t.train.prog.States() {
		states += x.Bytes
	}
	for _, f := range t.cfg.Data.Fields() {
		batch += int64(f.Bytes() * t.cfg.Batch)
	}
	const ring = 3 // batches of the loader
	if t.cfg.Comm != nil {
		perHost = t.cfg.LocalSize
	}
	items := []MemoryItem{
		{What: "weights", Bytes: buckets + frozen},
		{What: "gradients", Bytes: buckets},
		{What: "optimizer state", Bytes: buckets * int64(len(t.cfg.Optim.States()))},
		{What: "running statistics", Bytes: 2 * states}, // with the copy from before the current step
		{What: scratch, Bytes: max(t.train.prog.Scratch(), t.evalScratch())},
		{What: "batches", Bytes: batch * (ring + 1)},
		{What: "program and libraries", Bytes: program},
	}
	if n := t.ofMetrics(); n > 0 {
		items = append(items, MemoryItem{What: "metrics", Bytes: n})
	}
	if t.cfg.Optim.EMA.On() {
		items = append(items, MemoryItem{What: "average of the weights", Bytes: buckets + states})
	}
	if perHost > 1 { // counted in each rank's resident set, though it exists once
		items = append(items, MemoryItem{What: "gradients of the other ranks", Bytes: buckets * int64(perHost-1), Shared: true})
	}
	if codec.Sent > 0 {
		items = append(items, MemoryItem{What: "encoded gradients", Bytes: codec.Buffers})
	}
	if codec.Residuals > 0 {
		items = append(items, MemoryItem{What: "residuals of compression", Bytes: codec.Residuals})
	}
	return items
}

// ofMetrics is what tensors among the metrics need on the host, 0 if there are none: a copy of each micro-batch, and three sums in float64.
func (t *Trainer) ofMetrics() (n int64) {
	for _, p := range []*pass{t.train, t.eval} {
		copies := t.cfg.Accumulate
		if p == t.eval {
			copies = 1
		}
		if p != nil && len(p.tensors) > 0 {
			n += int64(p.net.width()) * int64(4*copies+3*8)
		}
	}
	return n
}

// evalScratch is what evaluation needs of the memory that it shares with training.
func (t *Trainer) evalScratch() int64 {
	if t.eval == nil {
		return 0
	}
	return t.eval.prog.Scratch()
}

// hostsOfJob is the number of machines of the job, as far as the ranks are spread evenly.
func (t *Trainer) hostsOfJob() int {
	hosts, _ := comm.Even(t.comm)
	return max(1, hosts)
}

// fitMemory meets Config.MemoryLimit. All ranks recompute what the rank needs that has the least room: workspaces of kernels depend on processor and threads.
func (t *Trainer) fitMemory(ctx context.Context, world, hosts int) error {
	limit := t.cfg.MemoryLimit
	if t.evaluating {
		return nil
	}
	var agree func(int) (int, error)
	if t.comm.Size() > 1 && !t.planning {
		item := comm.Item{Name: "train.memory_limit_mb", Text: fmt.Sprintf("%g", float64(limit)/(1<<20))}
		ctx, cancel := t.patient(ctx)
		defer cancel()
		if err := comm.Consensus(ctx, t.comm, "the limit of memory", []comm.Item{item}); err != nil {
			if _, differ := errors.AsType[*comm.ConsensusError](err); differ {
				err = fmt.Errorf("%w\nhint: give all ranks the same train.memory_limit_mb", err)
			}
			return fmt.Errorf("train: rank %d: %w", t.comm.Rank(), err)
		}
		agree = func(n int) (int, error) {
			most := []int64{int64(n)}
			err := comm.Wait(ctx)(t.comm.AllReduce(ctx, comm.HostOf(most), comm.Max))
			return int(most[0]), t.collected("agreeing on what is recomputed", err)
		}
	}
	if limit == 0 {
		return nil
	}
	params, err := t.params()
	if err != nil {
		return err
	}
	c := t.cutting(params)
	cut, err := c.Cut(world)
	if err != nil {
		return err
	}
	n, each := t.between(world, hosts)
	items := t.needs(cut.Bytes, world/hosts, t.compressed(t.cfg.Compress.Codec, cut, n, each))
	others := private(items) - max(t.train.prog.Scratch(), t.evalScratch())
	before := t.train.prog.Scratch()
	fitted, err := t.train.prog.Fit(limit-others, agree)
	var small *plan.TooSmall
	if errors.As(err, &small) {
		return t.tooSmall(items, others+max(before-small.Before+small.Least, t.evalScratch()))
	}
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if others+t.evalScratch() > limit {
		return t.tooSmall(items, others+t.evalScratch())
	}
	t.fitted = fitted
	return nil
}

// sayLimit logs what is recomputed because memory is limited.
func (t *Trainer) sayLimit() {
	if t.fitted != nil && len(t.fitted.Made) > 0 && t.comm.Rank() == 0 {
		slog.Info("the limit of memory: " + t.limit().String())
	}
}

// tooSmall refuses a limit that cannot be met.
func (t *Trainer) tooSmall(items []MemoryItem, least int64) error {
	var parts []string
	for _, m := range items {
		if !m.Shared && m.Bytes > 0 {
			parts = append(parts, m.What+" "+mib(m.Bytes))
		}
	}
	hint := "use a smaller batch with more micro-batches (train.batch_per_rank, train.accumulate_steps)"
	if least == private(items)-max(t.train.prog.Scratch(), t.evalScratch())+t.evalScratch() {
		hint = "use a smaller batch for evaluation (eval.batch_per_rank)"
	} else if other, err := t.otherChoice(); err == nil && other != nil && !t.cfg.Recompute {
		hint = fmt.Sprintf("train.recompute = \"layer\" needs about %s; or %s", mib(private(items)-t.train.prog.Scratch()+other.Arena), hint)
	}
	return launch.WithCode(launch.ExitRecipe, fmt.Errorf("train: a rank needs %s (%s), or %s if it recomputes whatever is cheap; the limit is %s\nhint: %s",
		mib(private(items)), strings.Join(parts, ", "), mib(least), mib(t.cfg.MemoryLimit), hint))
}

// mib prints bytes in the unit of the limit, rounded up.
func mib(n int64) string { return amount.Count((n+1<<20-1)>>20) + " MiB" }

// limit sums up what the limit of memory leads to.
func (t *Trainer) limit() *Limit {
	f := t.fitted
	l := &Limit{Bytes: t.cfg.MemoryLimit, Before: f.Before, After: f.After, Least: f.Least, Made: []MadeItem{}}
	for _, m := range f.Made {
		l.ExtraFLOP += m.FLOPs
		if t.peak > 0 {
			l.ExtraTime += max(float64(m.FLOPs)/(t.peak*efficiency), float64(m.Moved)/t.traffic()) * float64(t.cfg.Accumulate)
		}
		at := 0
		for at < len(l.Made) && l.Made[at].Kind != m.Kind {
			at++
		}
		if at == len(l.Made) {
			l.Made = append(l.Made, MadeItem{Kind: m.Kind})
		}
		l.Made[at].Count++
		l.Made[at].Bytes += m.Bytes
	}
	return l
}

// String says what is recomputed and what it saves.
func (l *Limit) String() string {
	if len(l.Made) == 0 {
		return "nothing is recomputed"
	}
	var made []string
	for _, m := range l.Made {
		made = append(made, fmt.Sprintf("%d %s", m.Count, m.Kind))
	}
	return fmt.Sprintf("recomputes results of %s; activations and workspace take %s instead of %s", strings.Join(made, ", "), amount.Bytes(l.After),
		amount.Bytes(l.Before))
}
