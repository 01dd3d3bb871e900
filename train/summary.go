package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/internal/amount"
)

// Summary describes a run without running it.
type Summary struct {
	Device       string         `json:"device"`
	Params       int64          `json:"params"`
	Trained      int64          `json:"trained"`
	States       int64          `json:"state_elements"`
	World        int            `json:"ranks"`
	GlobalBatch  int            `json:"global_batch"`
	Steps        int            `json:"steps"`
	StepsPerPass int            `json:"steps_per_epoch"`
	Convolutions string         `json:"convolutions,omitempty"` // by which algorithms they are computed, where the device has a choice
	Items        string         `json:"items"`                  // what a loss is summed over
	PerSample    int            `json:"items_per_sample"`       // items in a sample
	ForwardFLOP  int64          `json:"forward_flop"`           // of a micro-batch
	BackwardFLOP int64          `json:"backward_flop"`          // of a micro-batch
	Memory       []MemoryItem   `json:"memory"`                 // of one rank
	Parameters   []ParamItem    `json:"parameters"`             // in the order of the network
	Recompute    *Choice        `json:"recompute,omitempty"`
	Limit        *Limit         `json:"memory_limit,omitempty"`
	Buckets      []BucketItem   `json:"buckets"`
	Traffic      int64          `json:"traffic"`                 // bytes that a rank sends per step in a bandwidth-optimal all-reduce
	Between      bool           `json:"between_hosts,omitempty"` // Traffic is that between hosts: a codec works there only
	LR           []LRPoint      `json:"learning_rate"`
	Kinds        []KindItem     `json:"kinds"`             // where the time is expected to go
	Predicted    time.Duration  `json:"predicted_step_ns"` // 0: the device's peak is not known
	Program      *graph.Program `json:"-"`
}

// Choice compares keeping activations with recomputing them, for a model that has blocks.
type Choice struct {
	On        bool  `json:"on"`    // what the run uses
	Kept      int64 `json:"kept"`  // bytes of activations without recomputation
	Again     int64 `json:"again"` // bytes with it
	ExtraFLOP int64 `json:"extra_flop"`
}

// BucketItem is one gradient bucket.
type BucketItem struct {
	Bytes  int64    `json:"bytes"`
	Params []string `json:"params"`
}

// LRPoint is the learning rate of a step.
type LRPoint struct {
	Step int     `json:"step"`
	LR   float64 `json:"lr"`
}

// KindItem sums up the ops of one kind in a micro-batch.
type KindItem struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	FLOP  int64  `json:"flop"`
	Bytes int64  `json:"bytes"`
}

// Total is the sum of a rank's private memory.
func (s *Summary) Total() int64 { return private(s.Memory) }

// Summarise plans the run for a number of ranks: model, kernels, buckets, memory, schedule. It allocates nothing large, trains nothing, and
// measures nothing: where the run would choose algorithms by measurement, Summary.Convolutions says so. The caller closes the Trainer.
func (t *Trainer) Summarise(ctx context.Context, world int) (*Summary, error) {
	return t.SummariseOn(ctx, world, 1)
}

// SummariseOn is Summarise for ranks that are spread evenly over a number of hosts.
func (t *Trainer) SummariseOn(ctx context.Context, world, hosts int) (*Summary, error) {
	t.comm, t.planning = pretend{alone(), world}, true
	var err error
	if err = t.openDevice(); err != nil {
		return nil, err
	}
	if err := t.openData(); err != nil {
		return nil, err
	}
	if t.sched, err = t.cfg.Schedule(t.total, t.perEpoch); err != nil {
		return nil, err
	}
	if err := t.compile(ctx); err != nil {
		return nil, err
	}
	if err := t.fitMemory(ctx, world, hosts); err != nil {
		return nil, err
	}
	info := t.dev.Info()
	s := &Summary{
		Device: info.Name + " (" + info.Detail + ")", World: world, GlobalBatch: t.cfg.Batch * t.cfg.Accumulate * world,
		Steps: t.total, StepsPerPass: t.perEpoch, Program: t.train.prog, Items: t.train.net.items.name(), PerSample: t.train.net.items.perSample(),
	}
	s.Convolutions = t.conv.Why
	s.ForwardFLOP, s.BackwardFLOP = t.train.prog.Plan().FLOPs()
	buckets, err := t.summariseBuckets(s, world)
	if err != nil {
		return nil, err
	}
	n, each := t.between(world, hosts)
	bytes, codec := buckets.Bytes, t.compressed(t.cfg.Compress.Codec, buckets, n, each)
	s.Traffic = 2 * bytes / int64(world) * int64(world-1) // a ring, or halving and doubling
	if err := t.summariseParams(s); err != nil {
		return nil, err
	}
	s.Memory = t.needs(bytes, world/max(1, hosts), codec)
	if codec.Sent > 0 {
		s.Traffic, s.Between = 2*codec.Sent/int64(n)*int64(n-1), each > 1
	}
	if err := t.summariseRecompute(s); err != nil {
		return nil, err
	}
	if t.fitted != nil {
		s.Limit = t.limit()
	}
	for i := range 21 {
		step := i * max(t.total-1, 0) / 20
		if n := len(s.LR); n == 0 || s.LR[n-1].Step != step {
			s.LR = append(s.LR, LRPoint{step, t.sched.LR(step)})
		}
	}
	t.predict(s)
	return s, nil
}

// summariseBuckets cuts the buckets as the engine will, and passes them to the program.
func (t *Trainer) summariseBuckets(s *Summary, world int) (*bucket.Plan, error) {
	params, err := t.params()
	if err != nil {
		return nil, err
	}
	c := t.cutting(params)
	plan, err := c.Cut(world)
	if err != nil {
		return nil, err
	}
	for _, b := range plan.Buckets {
		item := BucketItem{Bytes: b.Bytes}
		for _, p := range b.Places {
			item.Params = append(item.Params, params[p.Param].Name)
		}
		s.Buckets = append(s.Buckets, item)
	}
	t.train.prog.Group(t.groups(plan))
	return plan, nil
}

// summariseRecompute compares with the other choice. A model without blocks, or with states in them, has no choice.
func (t *Trainer) summariseRecompute(s *Summary) error {
	other, err := t.otherChoice()
	if err != nil || other == nil {
		return err
	}
	kept, again := t.train.prog.Plan(), other
	if t.cfg.Recompute {
		kept, again = again, kept
	}
	_, a := again.FLOPs()
	_, k := kept.FLOPs()
	s.Recompute = &Choice{On: t.cfg.Recompute, Kept: kept.Arena, Again: again.Arena, ExtraFLOP: a - k}
	return nil
}

// otherChoice plans, without kernels, what Config.Recompute does not choose; nil where that is impossible.
func (t *Trainer) otherChoice() (*plan.Plan, error) {
	g, err := t.train.net.b.Lower()
	if err != nil {
		return nil, err
	}
	o := t.planOptions()
	o.Recompute = !o.Recompute
	o.Layouts = t.train.prog.Layouts()
	other, err := plan.Build(g, t.dev, o)
	if err != nil {
		return nil, nil // the run itself was planned successfully; only the alternative is impossible
	}
	t.train.prog.Workspaces(other)
	return other, nil
}

// bandwidth is the memory traffic per thread that a prediction assumes, in bytes per second: what one core of a current server reaches. It limits
// only ops with little arithmetic, so it need not be exact.
const bandwidth = 12e9

// efficiency is the fraction of the peak that convolutions and matrix products reach on average.
const efficiency = 0.8

// predict sums, op by op, the larger of compute time and memory time.
func (t *Trainer) predict(s *Summary) {
	kinds := map[string]*KindItem{}
	var seconds float64
	pl := t.train.prog.Plan()
	for i := range pl.Steps {
		st := &pl.Steps[i]
		k := kinds[st.Op.Kind]
		if k == nil {
			k = &KindItem{Kind: st.Op.Kind}
			kinds[st.Op.Kind] = k
		}
		flop, bytes := st.FLOPs(), op.Bytes(st.Op)
		k.Count, k.FLOP, k.Bytes = k.Count+1, k.FLOP+flop, k.Bytes+bytes
		seconds += t.expected(st)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		s.Kinds = append(s.Kinds, *kinds[name])
	}
	slices.SortStableFunc(s.Kinds, func(a, b KindItem) int {
		return int(min(max(b.FLOP-a.FLOP, -1), 1))
	})
	s.Predicted = time.Duration(seconds * float64(t.cfg.Accumulate) * 1e9)
}

// expected is the time of a step of the plan in seconds; 0 if the device's peak is not known.
func (t *Trainer) expected(st *plan.Step) float64 {
	if t.peak <= 0 {
		return 0
	}
	return max(float64(st.FLOPs())/(t.peak*efficiency), float64(op.Bytes(st.Op))/t.traffic())
}

// traffic is how many bytes a second the device is expected to move: an accelerator moves at least five bytes in the time of a thousand operations.
func (t *Trainer) traffic() float64 {
	return max(bandwidth*float64(max(1, t.dev.Info().Threads)), t.peak*0.005)
}

// pretend is a communicator of which only the size is real: enough to divide data and memory.
type pretend struct {
	comm.Communicator
	size int
}

func (p pretend) Size() int { return p.size }

// String prints the totals, for logs.
func (s *Summary) String() string {
	return fmt.Sprintf("%s parameters, %s per micro-batch, %s per rank, %d buckets, %s steps", amount.Count(s.Params),
		amount.FLOP(s.ForwardFLOP+s.BackwardFLOP), amount.Bytes(s.Total()), len(s.Buckets), amount.Count(s.Steps))
}
