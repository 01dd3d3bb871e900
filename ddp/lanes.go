package ddp

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/schedule"
)

// lane is a group of ranks with an order of issue of its own, and two goroutines: the issuer and the completer.
type lane struct {
	group  comm.Communicator // of steps without a codec: in the first lane
	coded  comm.Communicator // of a phase of the codec, or of all
	issue  chan ready        // in the order of package schedule
	flight chan inFlight     // issued, in that order
}

// encode opens the codec, if there is one, and makes the lanes.
func (e *Engine) encode(ctx context.Context) (err error) {
	n := len(e.plan.Buckets)
	if e.plain, err = newRun(n, 1, 1); err != nil {
		return err
	}
	e.lanes = []*lane{{group: e.comm}}
	if e.cfg.Codec != nil && e.comm.Size() > 1 {
		if err := e.openCodec(ctx, n); err != nil {
			return err
		}
	}
	for l, lane := range e.lanes {
		items := n
		if e.coded != nil {
			items = max(n, len(e.coded.Plan().Lane(l)))
		}
		lane.issue, lane.flight = make(chan ready, items), make(chan inFlight, items)
	}
	return nil
}

func newRun(buckets, phases, groups int) (*schedule.Run, error) {
	p, err := schedule.New(buckets, phases, groups)
	if err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	return schedule.NewRun(p), nil
}

// of is the group of a collective.
func (l *lane) of(r ready) comm.Communicator {
	if r.coded {
		return l.coded
	}
	return l.group
}

// openCodec opens the codec, and makes a lane for each of its groups.
func (e *Engine) openCodec(ctx context.Context, buckets int) (err error) {
	codec := e.cfg.Codec
	if _, ok := e.comm.(comm.Ordered); ok {
		if e.device, ok = codec.(DeviceCodec); !ok || codec.Phases() != 1 {
			return fmt.Errorf("ddp: rank %d: codec %s works in the host's memory, and transport %q reduces the memory of the device\n"+
				"hint: use a codec that the device can cast to (f16, bf16), or none", e.comm.Rank(), codec.Name(), e.comm.Transport())
		}
	}
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	mem := make([]comm.Mem, len(e.bkts))
	for k, b := range e.bkts {
		mem[k] = b.Mem
	}
	used, groups, err := OpenCodec(ctx, codec, e.plan, mem, e.comm)
	if err != nil {
		return fmt.Errorf("ddp: rank %d: codec %s: %w", e.comm.Rank(), codec.Name(), err)
	}
	e.codec, e.groups = used, groups
	phases := used.Phases()
	if last := len(groups) - 1; last > 0 && groups[last] == e.comm { // one for all phases
		groups = groups[:1]
	}
	e.lanes[0].coded = groups[0]
	for _, g := range groups[1:] {
		e.lanes = append(e.lanes, &lane{group: g, coded: g})
	}
	e.coded, err = newRun(buckets, phases, len(groups))
	return err
}

// touch reduces the zeros in gradient memory once, as steps will, so that the transport sets up its connections and mappings now.
func (e *Engine) touch(ctx context.Context) error {
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	for k, b := range e.bkts {
		err := e.once(ctx)(e.comm.AllReduce(ctx, b.Mem, comm.Sum))
		if err == nil && e.codec != nil && e.device == nil {
			err = e.touchCoded(ctx, k)
		}
		if err != nil {
			return fmt.Errorf("ddp: rank %d: before the first step: bucket of %s: %w", e.comm.Rank(), b.Title, err)
		}
	}
	return nil
}

// once waits for a collective. Nothing uses its memory afterwards, or Note [memory in use] applies.
func (e *Engine) once(ctx context.Context) func(comm.Handle, error) error {
	return func(h comm.Handle, err error) error {
		if err != nil {
			return err
		}
		if err = h.Wait(ctx); err != nil {
			e.abort(err)
			e.quiet(h)
		}
		return err
	}
}

// touchCoded does one bucket as a step with the codec will.
func (e *Engine) touchCoded(ctx context.Context, k int) error {
	e.codec.Begin(-1, 1)
	defer e.codec.Settle(false)
	for phase := range e.codec.Phases() {
		call, out, in, err := e.codec.Prepare(k, phase)
		if err != nil {
			return err
		}
		if err := e.once(ctx)(comm.Do(ctx, e.lanes[e.coded.Plan().LaneOf(phase)].coded, call, out, in)); err != nil {
			return err
		}
	}
	return e.codec.Finish(k)
}

// advance hands to the issuers what may be issued now. mu is held. The channels have room for a whole step, so it never blocks.
func (e *Engine) advance() {
	s := &e.step
	for l := range s.run.Plan().Lanes() {
		for it, ok := s.run.Next(l); ok; it, ok = s.run.Next(l) {
			e.lanes[l].issue <- ready{it: it, step: s.number, coded: s.coded, event: s.event[it.Bucket]}
		}
	}
}

// LossScale says by what the gradients of the following steps are multiplied; 1 at first. A codec keeps its residuals without it.
func (e *Engine) LossScale(scale float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scale = scale
}

// Settle says whether the step that Wait has ended was applied, or skipped or abandoned; the same on all ranks. A codec then commits or drops what it keeps
// from step to step. Without a call, Begin of the next step counts as an applied one. Without a codec it does nothing.
func (e *Engine) Settle(accepted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(accepted)
}

// settle is Settle. mu is held.
func (e *Engine) settle(accepted bool) {
	if e.step.unsettled && !e.step.open {
		e.step.unsettled = false
		e.codec.Settle(accepted)
	}
}

// Codec returns the codec in use, nil if there is none: also in a group of one rank.
func (e *Engine) Codec() Codec { return e.codec }
