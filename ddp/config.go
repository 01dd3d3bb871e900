package ddp

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Param is one parameter whose gradient is reduced.
type Param struct {
	Name  string
	Elems int64     // padding of a device layout included
	DType npu.DType // of the gradient; Invalid (the zero value) = F32
	Group int       // optimizer group: parameters of one group are contiguous in a bucket
}

// Config of an engine. Params and Comm are required; the zero values of the rest are useful.
type Config struct {
	// Params in ready order: the order in which the backward pass completes gradients. The same on every rank.
	Params []Param
	// Comm reduces gradients and broadcasts weights. The engine does not close it.
	Comm comm.Communicator
	// Control joins the same ranks for what the host exchanges: votes, comparisons, statistics; nil = Comm. It differs from Comm where a device has
	// memory of its own: comm.ForDevice makes the one for Comm. The engine does not close it.
	Control comm.Communicator
	// Device on which gradients are computed; nil is the host. A group of one rank takes gradient memory from it, larger groups from Comm.
	Device npu.Device

	BucketMB      float64 // cap of a bucket in MiB; 0 = 25
	FirstBucketMB float64 // cap of the first bucket in MiB; 0 = 1, or BucketMB if that is less
	LastBucketMB  float64 // cap of the last bucket in MiB; 0 = FirstBucketMB

	// Timeout is how long a collective waits for a missing, silent rank; 0 = 5 minutes.
	Timeout time.Duration
	// LongWork is how long it waits for a rank that reports long work (comm.Communicator.Work) and makes progress, and how long a bucket waits for this
	// rank's own device; 0 = 1 hour.
	LongWork time.Duration
	// OnBucket, if set, is called once for each bucket and step, in plan order, from a goroutine of the engine. It should enqueue work and return; an
	// error breaks the engine. If after is nil, bucket k holds its sum over ranks. Otherwise Comm is ordered by events: the sum is there once after is
	// reached, and a stream that uses m must wait for that event (npu.Stream.Wait); enqueue this before the step's Wait returns. Wait returns after
	// the last call, when all sums are there.
	OnBucket func(k int, m comm.Mem, after npu.Event) error
	// VoteFirst makes every reduction wait for a Vote in the same step.
	VoteFirst bool
	// Codec encodes gradients for their reduction; nil = none. The engine opens and closes it. A group of one rank does not use it.
	Codec Codec
	// CodecFrom is the number of the first step that uses the codec; steps before it are reduced as if there were none.
	CodecFrom int64
	// Trace, if set, receives a Span for everything that the engine waits for. It is called from several goroutines, and may call methods of the engine.
	Trace func(Span)
	// Same lists other items that must be equal on all ranks, such as version and hash of the recipe. New compares them.
	Same []comm.Item
}

// Span is a stretch of time for a trace.
type Span struct {
	// What is "ready" (a bucket is full; no length), "event" (the host waits for the device), "reduce" (issue to completion of a collective), "encode" and
	// "decode" (the codec's work before and after collectives), "callback", "wait" (Wait blocked). Two are times of the device, where the transport tells
	// them (comm.Timed): "compute" (from the completion of the gradients of the bucket before to that of this one) and "transfer" (the reduction itself).
	What   string
	Step   int64
	Bucket int // -1 for "wait"
	Phase  int // of a codec; 0 without one
	Begin  time.Time
	End    time.Time
}

const mib = 1 << 20

// fill checks a configuration and sets defaults.
func (c *Config) fill() error {
	if c.Comm == nil {
		return fmt.Errorf("ddp: Config.Comm is nil\nhint: use self.New() for a single rank")
	}
	if c.Control == nil {
		c.Control = c.Comm
	}
	if a, b := c.Comm, c.Control; a.Rank() != b.Rank() || a.Size() != b.Size() {
		return fmt.Errorf("ddp: Config.Comm is rank %d of %d (%s), Config.Control rank %d of %d (%s)\nhint: both must join the same ranks in the same order",
			a.Rank(), a.Size(), a.Transport(), b.Rank(), b.Size(), b.Transport())
	}
	if c.Timeout < 0 || c.LongWork < 0 {
		return fmt.Errorf("ddp: Timeout is %v, LongWork %v", c.Timeout, c.LongWork)
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.LongWork == 0 {
		c.LongWork = time.Hour
	}
	return nil
}

// codec describes what encodes gradients, for the comparison of ranks.
func (c *Config) codec() string {
	if c.Codec == nil {
		return "none"
	}
	return fmt.Sprintf("%s from step %d", c.Codec.Name(), c.CodecFrom)
}

// Cut plans the buckets as New does, for a number of ranks. It does not need Comm.
func (c *Config) Cut(ranks int) (*bucket.Plan, error) {
	for _, f := range [...]struct {
		name string
		mb   float64
	}{{"BucketMB", c.BucketMB}, {"FirstBucketMB", c.FirstBucketMB}, {"LastBucketMB", c.LastBucketMB}} {
		if !(f.mb >= 0 && f.mb < 1<<20) {
			return nil, fmt.Errorf("ddp: %s is %v MiB", f.name, f.mb)
		}
	}
	params := make([]bucket.Param, len(c.Params))
	for i, p := range c.Params {
		if p.DType == npu.Invalid {
			p.DType = npu.F32
		}
		params[i] = bucket.Param{Name: p.Name, Elems: p.Elems, DType: p.DType, Group: p.Group}
	}
	plan, err := bucket.New(params, bucket.Config{
		CapBytes:   int64(c.BucketMB * mib),
		FirstBytes: int64(c.FirstBucketMB * mib),
		LastBytes:  int64(c.LastBucketMB * mib),
		World:      ranks,
	})
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	return plan, nil
}
