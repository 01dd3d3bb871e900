package ddp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/schedule"
	"github.com/gotrain/gotrain/npu"
)

// Engine reduces the gradients of one rank with those of its peers. Create it with New.
type Engine struct {
	cfg   Config
	comm  comm.Communicator // gradients and state
	ctl   comm.Communicator // agreements; may be comm
	plan  *bucket.Plan
	mem   npu.Buffer // all buckets
	grads []comm.Mem // by parameter
	bkts  []Bucket
	vote  comm.Mem // memory of Agree
	look  looker   // reads memory that the host cannot access

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	lanes  []*lane       // by group of package schedule; the first is comm
	landed chan struct{} // one token: all buckets of the step landed
	broken chan struct{} // closed with err

	codec  Codec               // nil: none
	groups []comm.Communicator // by its phase; comm, or others that the engine closes
	device DeviceCodec         // codec, if the device does its work
	plain  *schedule.Run       // of steps without the codec
	coded  *schedule.Run       // of steps with it; nil if there is none

	leave   chan struct{} // closed by Abandon
	leaving sync.Once
	loose   atomic.Bool // Note [memory in use]

	mu    sync.Mutex
	err   error // first error, or ErrClosed
	step  step
	scale float64 // of the loss
	stats StepStats
}

// Bucket is one contiguous range of gradient memory.
type Bucket struct {
	bucket.Bucket
	Mem   comm.Mem // padding included; it holds zeros
	Title string   // first and last parameter in ready order
}

// New plans the buckets, verifies that all ranks have the same plan (the error names the first difference and the ranks), and
// allocates zeroed gradient memory. Every rank must call it. ctx bounds the comparison.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	plan, err := cfg.Cut(cfg.Comm.Size())
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, comm: cfg.Comm, ctl: cfg.Control, plan: plan, scale: 1}
	if err := e.same(ctx); err != nil {
		return nil, err
	}
	if err := e.alloc(); err != nil {
		return nil, err
	}
	e.broken, e.leave = make(chan struct{}), make(chan struct{})
	err = e.encode(ctx)
	if err == nil {
		err = e.touch(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.undo())
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.landed = make(chan struct{}, 1)
	e.step.init(plan)
	e.wg.Add(2 * len(e.lanes))
	for _, l := range e.lanes {
		go e.issuer(l)
		go e.completer(l)
	}
	return e, nil
}

// same compares everything that must be equal on all ranks.
func (e *Engine) same(ctx context.Context) error {
	c := e.plan.Config
	items := append(slices.Clone(e.cfg.Same),
		comm.Item{Name: "bucket sizes", Text: fmt.Sprintf("cap %d first %d last %d align %d", c.CapBytes, c.FirstBytes, c.LastBytes, c.AlignBytes)})
	for i := range e.plan.Params {
		items = append(items, comm.Item{Name: fmt.Sprintf("parameter %d", i), Text: e.plan.Describe(i)})
	}
	items = append(items, comm.Item{Name: "plan", Text: e.plan.Fingerprint()}, comm.Item{Name: "codec", Text: e.cfg.codec()})
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	err := comm.Consensus(ctx, e.ctl, "what is trained", items)
	if err == nil {
		return nil
	}
	hint := ""
	if differ := (*comm.ConsensusError)(nil); errors.As(err, &differ) { // not for a rank that is late or gone
		hint = "\nhint: run the same binary with the same recipe on all ranks"
	}
	return fmt.Errorf("ddp: rank %d: before the first step: %w%s", e.comm.Rank(), err, hint)
}

func (e *Engine) alloc() (err error) {
	if e.comm.Size() == 1 && e.cfg.Device != nil {
		e.mem, err = e.cfg.Device.Alloc(e.plan.Bytes)
	} else {
		e.mem, err = e.comm.Alloc(e.plan.Bytes)
	}
	if err != nil {
		return fmt.Errorf("ddp: rank %d: gradient memory of %d bytes: %w", e.comm.Rank(), e.plan.Bytes, err)
	}
	if err := e.reachable(); err != nil {
		e.mem.Free()
		return err
	}
	base := npu.Ptr{Buf: e.mem}
	e.grads = make([]comm.Mem, len(e.plan.Params))
	for k, b := range e.plan.Buckets {
		at := base.At(b.Offset)
		e.bkts = append(e.bkts, Bucket{Bucket: b, Title: e.plan.Title(k), Mem: comm.Mem{Ptr: at, Elems: b.Elems, DType: b.DType}})
		for _, pl := range b.Places {
			e.grads[pl.Param] = comm.Mem{Ptr: at.At(pl.Offset), Elems: e.plan.Params[pl.Param].Elems, DType: b.DType}
		}
	}
	return nil
}

// reachable rejects memory that the device's kernels cannot write: host memory of a transport with a device that has separate memory.
func (e *Engine) reachable() error {
	if e.cfg.Device == nil || e.mem.Host() == nil || e.plan.Bytes == 0 {
		return nil
	}
	probe, err := e.cfg.Device.Alloc(64)
	if err != nil {
		return fmt.Errorf("ddp: rank %d: %w", e.comm.Rank(), err)
	}
	defer probe.Free()
	if probe.Host() == nil {
		return fmt.Errorf("ddp: rank %d: transport %q reduces host memory, but device %s has separate memory\nhint: use the device's own transport",
			e.comm.Rank(), e.comm.Transport(), e.cfg.Device.Info().Name)
	}
	return nil
}

// Grad returns the memory of gradient i, inside its bucket.
func (e *Engine) Grad(i int) comm.Mem { return e.grads[i] }

// GradF32 returns Grad as a slice, for host memory and float32 gradients. It panics if the host cannot access the memory.
func (e *Engine) GradF32(i int) []float32 { return comm.View[float32](e.grads[i]) }

// Buckets returns the buckets in plan order. The slice must not be changed.
func (e *Engine) Buckets() []Bucket { return e.bkts }

// Plan returns the layout of the gradients.
func (e *Engine) Plan() *bucket.Plan { return e.plan }

// Comm returns the communicator that reduces gradients.
func (e *Engine) Comm() comm.Communicator { return e.comm }

// Control returns the communicator of agreements: that of Comm, unless Config.Control is another.
func (e *Engine) Control() comm.Communicator { return e.ctl }

// Zero clears all gradients. Call it before the first gradient of a step is ready, when the device is idle.
func (e *Engine) Zero(ctx context.Context) error {
	e.mu.Lock()
	err, busy := e.err, e.step.open && e.step.filled > 0
	e.mu.Unlock()
	switch {
	case err != nil:
		return err
	case busy:
		return fmt.Errorf("ddp: rank %d: Zero while gradients are reduced\nhint: call it before the first Ready of a step", e.comm.Rank())
	}
	if h := e.mem.Host(); h != nil || e.plan.Bytes == 0 {
		clear(h)
		return nil
	}
	c, err := e.copier()
	if err == nil {
		err = c.Zero(ctx, npu.Ptr{Buf: e.mem}, e.plan.Bytes)
	}
	if err != nil {
		return fmt.Errorf("ddp: rank %d: clearing gradients: %w", e.comm.Rank(), err)
	}
	return nil
}

// deadline returns the context of one collective.
func (e *Engine) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return comm.Patient(ctx, e.cfg.Timeout, e.cfg.LongWork)
}

// trace must not be called with mu held: the callback may call the engine.
func (e *Engine) trace(what string, r ready, begin time.Time) {
	if e.cfg.Trace != nil {
		e.cfg.Trace(Span{What: what, Step: r.step, Bucket: r.it.Bucket, Phase: r.it.Phase, Begin: begin, End: time.Now()})
	}
}
