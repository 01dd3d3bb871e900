package compress

import (
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

func init() { kinds["int8"] = func(o Options) (ddp.Codec, error) { return &int8s{o: o}, nil } }

// int8s is the codec int8: an all-to-all and an all-gather for each bucket.
type int8s struct {
	o      Options
	plan   *bucket.Plan
	rank   int
	ranks  int
	bkts   []int8Bucket
	now    int     // which residuals are committed: 0 or 1
	unit   float32 // of the gradients of this step
	number int64
	raw    int64
	begun  bool // a step was begun that is not settled
}

// int8Bucket is a bucket on its way. Its methods are in phases.go.
type int8Bucket struct {
	c      *int8s
	l      *layout
	mem    comm.Mem
	x      []float32
	bufs   [2]npu.Buffer
	send   []byte // encoded parts for all ranks; then the encoded sums of all parts
	recv   []byte // this rank's part, as every rank encoded it
	lost   residual
	gaps   []bucket.Piece   // what is no gradient
	source []unsafe.Pointer // of sums of raw values
	finite bool
	error  sample
}

// residual is what rounding has lost in the values of a bucket, before and after the current step. Of this rank's own part it is what the second phase
// has lost, else what the first has: a rank rounds each value once. nil without error feedback.
type residual struct {
	value [2][]int16
	scale [2][]float32 // by block
}

// Name tells what distinguishes results.
func (c *int8s) Name() string {
	if c.o.NoFeedback {
		return fmt.Sprintf("int8, blocks of %d, no error feedback", c.o.Block)
	}
	return fmt.Sprintf("int8, blocks of %d, error feedback", c.o.Block)
}

// Phases is 2: the exchange of parts, and the gathering of their sums.
func (c *int8s) Phases() int { return 2 }

// Open makes buffers and residuals of zero.
func (c *int8s) Open(p *bucket.Plan, mem []comm.Mem, to comm.Communicator) error {
	if c.plan != nil {
		return fmt.Errorf("compress: int8: opened twice")
	}
	c.plan, c.rank, c.ranks, c.unit = p, to.Rank(), to.Size(), 1
	c.bkts = make([]int8Bucket, len(mem))
	for k, m := range mem {
		switch {
		case m.DType != npu.F32:
			return fmt.Errorf("compress: int8: bucket of %s holds %v\nhint: codecs are for float32 gradients", p.Title(k), m.DType)
		case m.Elems > 0 && m.Host() == nil:
			return errNotHost("int8")
		}
		if err := c.bkts[k].open(c, k, m, to); err != nil {
			return err
		}
		c.raw += p.Buckets[k].Payload
	}
	return nil
}

func (b *int8Bucket) open(c *int8s, k int, m comm.Mem, to comm.Communicator) (err error) {
	*b = int8Bucket{c: c, l: newLayout(c.plan, k, c.o.Block, c.ranks, c.o.Raw), mem: m, x: comm.View[float32](m), finite: true,
		gaps: c.plan.Gaps(k), source: make([]unsafe.Pointer, c.ranks)}
	if c.ranks == 1 {
		return nil // nothing travels
	}
	for i, to1 := range []*[]byte{&b.send, &b.recv} {
		n := int64(b.l.part * c.ranks)
		if b.bufs[i], err = to.Alloc(n); err != nil {
			return fmt.Errorf("compress: %d bytes for encoded gradients: %w", n, err)
		}
		*to1 = b.bufs[i].Host()
		if *to1 == nil && n > 0 {
			return errNotHost("int8")
		}
	}
	if c.o.NoFeedback {
		return nil
	}
	for i := range 2 {
		b.lost.value[i], b.lost.scale[i] = make([]int16, b.l.elems), make([]float32, len(b.l.raw))
	}
	return nil
}

// Units of gradients outside of this range are taken for its ends: such loss scales serve no purpose.
const leastUnit, mostUnit = 0x1p-20, 0x1p100

// Begin opens a step.
func (c *int8s) Begin(step int64, scale float64) {
	c.number, c.unit, c.begun = step, float32(min(max(scale, leastUnit), mostUnit)), true
	for k := range c.bkts {
		c.bkts[k].finite, c.bkts[k].error = true, sample{}
	}
}

// Prepare encodes all parts for their owners, and then the sum of the own part for all.
func (c *int8s) Prepare(k, phase int) (comm.Call, comm.Mem, comm.Mem, error) {
	b := &c.bkts[k]
	if c.ranks == 1 {
		return comm.Call{Kind: comm.Barrier}, comm.Mem{}, comm.Mem{}, nil
	}
	all := int64(b.l.part * c.ranks)
	send := comm.Mem{Ptr: npu.Ptr{Buf: b.bufs[0]}, Elems: all, DType: npu.U8}
	recv := comm.Mem{Ptr: npu.Ptr{Buf: b.bufs[1]}, Elems: all, DType: npu.U8}
	if phase == 0 {
		b.encode()
		return comm.Call{Kind: comm.AllToAll, DType: npu.U8, Elems: all}, recv, send, nil
	}
	b.sum()
	return comm.Call{Kind: comm.AllGather, DType: npu.U8, Elems: all}, send, send.Slice(int64(b.l.part*c.rank), int64(b.l.part)), nil
}

// Finish decodes the sums of all parts.
func (c *int8s) Finish(k int) error {
	if c.ranks > 1 {
		c.bkts[k].decode()
	}
	return nil
}

// Finite reports whether a bucket's sum was finite when it was decoded last.
func (c *int8s) Finite(k int) bool { return c.bkts[k].finite }

// Settle commits the residuals of an accepted step.
func (c *int8s) Settle(accepted bool) {
	if accepted && c.begun {
		c.now = 1 - c.now
	}
	c.begun = false
}

// Coded sums up the buckets.
func (c *int8s) Coded() ddp.Coded {
	out := ddp.Coded{Raw: c.raw, Bucket: -1}
	for k := range c.bkts {
		b := &c.bkts[k]
		out.Sent += int64(b.l.part * c.ranks)
		b.error.into(&out, float64(b.mem.Elems), float64(c.unit))
		if !b.finite && !out.NonFinite {
			out.NonFinite, out.Bucket = true, k
		}
	}
	if !c.o.NoFeedback {
		out.Residual = out.Lost // what this step has lost is what the next will add
	}
	if c.ranks == 1 {
		out.Sent = c.raw
	}
	return out
}

// Close frees the buffers.
func (c *int8s) Close() (err error) {
	for i := range c.bkts {
		for _, buf := range c.bkts[i].bufs {
			if buf != nil {
				err = firstError(err, buf.Free())
			}
		}
	}
	c.bkts = nil
	return err
}
