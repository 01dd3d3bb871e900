package ddp

import (
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// Codec makes the reduction of buckets smaller: it replaces the all-reduce of a bucket by collectives of its own, over encoded gradients. Package
// ddp/compress has codecs.
//
// For each bucket of a reduced step the engine calls Prepare for phase 0 once the gradients are complete, issues the collective that it returns, waits for
// it, calls Prepare for phase 1, and so on; after the last collective it calls Finish. Within a phase, buckets come in plan order. Calls for different buckets
// overlap: Prepare of bucket 3 may run while Finish of bucket 1 does, in another goroutine. Calls for one bucket never do, and Begin, Settle and Coded run
// alone. See package ddp/schedule for the order in which collectives are issued.
//
// On several hosts with as many ranks each, a codec is used between hosts only (OpenCodec): it is opened with a plan and memory of the part of each bucket
// that the rank has to itself, and with a group of the ranks that have the same part. Its plan has all parameters, some without a place. Finish then runs
// before the parts are gathered. A codec with a method Finite(bucket int) bool, which says whether Finish found finite numbers only, saves a search for others.
type Codec interface {
	// Name is the word of the recipe, with what distinguishes results: "int8, blocks of 256, error feedback". Ranks compare it.
	Name() string
	// Phases is the number of collectives per bucket.
	Phases() int
	// Open makes buffers for the buckets of p, whose memory is mem. c reduces them; the memory that a collective uses should come from its Alloc. All
	// ranks call it at the same point.
	Open(p *bucket.Plan, mem []comm.Mem, c comm.Communicator) error
	// Begin opens a step that is reduced. Gradients in the buckets are multiplied by scale, the loss scale: residuals that last longer than a step do not
	// depend on it.
	Begin(step int64, scale float64)
	// Prepare does the work on the host before the collective of a phase, such as encoding, and describes that collective.
	Prepare(k, phase int) (call comm.Call, out, in comm.Mem, err error)
	// Finish runs after the last collective of bucket k: then the bucket holds the sum, bit-equal on all ranks.
	Finish(k int) error
	// Settle says whether the step that was reduced last was applied, or skipped or abandoned: residuals are committed or dropped. It is called once per
	// step, before the next Begin.
	Settle(accepted bool)
	// Coded returns what the step since Begin cost in bytes and precision. The engine calls it after the last Finish.
	Coded() Coded
	// Close frees buffers. It is not called if a transport may still use them.
	Close() error
}

// DeviceCodec is a Codec for transports that are ordered by events of the device (comm.Ordered): its work runs on a stream of the device, and the host does
// not wait. It has one phase, an all-reduce. An engine with such a transport needs one, and calls these methods instead of Prepare and Finish, from one
// goroutine.
type DeviceCodec interface {
	Codec
	// PrepareAfter enqueues the work of Prepare behind ev, and returns the memory to reduce and the event that follows the work.
	PrepareAfter(k int, ev npu.Event) (m comm.Mem, ready npu.Event, err error)
	// FinishAfter enqueues the work of Finish behind ev, which follows the reduction, and returns the event that is reached once the bucket holds the sum.
	FinishAfter(k int, ev npu.Event) (after npu.Event, err error)
}

// Coded is what a codec did in a step, on this rank.
type Coded struct {
	Raw  int64 // bytes of the gradients without padding
	Sent int64 // bytes of the gradients as encoded; Raw ÷ Sent is the ratio of compression
	// Sums of squares over all buckets, in unscaled units: of what encoding lost in this step, of the gradients that were encoded, and of the residuals
	// that the next step will add.
	Lost, Norm, Residual float64
	// NonFinite says that a decoded block was not finite; equal on all ranks. The first such bucket is Bucket.
	NonFinite bool
	Bucket    int
}
