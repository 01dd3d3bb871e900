package ddp

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

// OpenCodec opens a codec for the buckets of a plan that c reduces. It returns the codec to use in its place, and the group of each of its phases; c itself
// where it cannot make others. The groups that are not c are the caller's to close, after the codec.
//
// Where c has several hosts with as many ranks each (comm.Even), the codec works between hosts only: the ranks of a host add their gradients as they are,
// each then has a part of the host's sum, which the codec reduces with the same part of the other hosts, and gathers the parts of the others. So a host sends
// each number once, encoded, and each rank encodes a part of the gradients. Elsewhere the codec has all ranks.
func OpenCodec(ctx context.Context, codec Codec, p *bucket.Plan, mem []comm.Mem, c comm.Communicator) (Codec, []comm.Communicator, error) {
	_, device := c.(comm.Ordered)
	if hosts, each := comm.Even(c); hosts > 1 && each > 1 && !device {
		return openBetween(ctx, codec, p, mem, c)
	}
	groups := []comm.Communicator{c}
	if _, ok := c.(comm.Brancher); ok {
		for phase := 1; phase < codec.Phases(); phase++ {
			g, err := comm.Branch(ctx, c)
			if err != nil {
				return nil, nil, errors.Join(fmt.Errorf("a group for phase %d: %w", phase, err), closeGroups(groups, c))
			}
			groups = append(groups, g)
		}
	} else {
		for range codec.Phases() - 1 {
			groups = append(groups, c)
		}
	}
	if err := codec.Open(p, mem, c); err != nil {
		return nil, nil, errors.Join(err, closeGroups(groups, c))
	}
	return codec, groups, nil
}

// closeGroups closes groups that are not c.
func closeGroups(groups []comm.Communicator, c comm.Communicator) error {
	var errs []error
	for i := len(groups) - 1; i >= 0; i-- {
		if groups[i] != c {
			errs = append(errs, groups[i].Close())
		}
	}
	return errors.Join(errs...)
}

// between is a codec that works between hosts. Each rank has a part of every bucket to itself: it encodes that of its host's sum.
type between struct {
	Codec
	local, each int // this rank among those of its host
	hosts       int
	plan        *bucket.Plan
	mem         []comm.Mem
	own         []comm.Mem
	pieces      []bucket.Piece // by parameter: what lies in the own parts
	spoiled     []bool         // by bucket: a part is not finite
}

func openBetween(ctx context.Context, codec Codec, p *bucket.Plan, mem []comm.Mem, c comm.Communicator) (Codec, []comm.Communicator, error) {
	spans := []comm.Span{comm.Inside}
	for range codec.Phases() {
		spans = append(spans, comm.Between)
	}
	groups, err := comm.Chain(ctx, c, append(spans, comm.Inside)...)
	if err != nil {
		return nil, nil, err
	}
	inside := groups[0]
	b := &between{Codec: codec, local: inside.Rank(), each: inside.Size(), hosts: groups[1].Size(), plan: p, mem: mem, spoiled: make([]bool, len(mem))}
	for _, m := range mem {
		switch {
		case m.DType != npu.F32:
			err = fmt.Errorf("a bucket of %v: codecs between hosts are for float32 gradients", m.DType)
		case m.Elems > 0 && m.Host() == nil:
			err = errors.New("the host cannot access the gradients")
		}
		per := m.Elems / int64(b.each)
		b.own = append(b.own, m.Slice(int64(b.local)*per, per))
	}
	var part *bucket.Plan
	if err == nil {
		part, b.pieces, err = p.Part(b.local, b.each)
	}
	if err == nil {
		err = codec.Open(part, b.own, groups[1])
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeGroups(groups, c))
	}
	return b, groups, nil
}

// Phases are those of the codec, and one inside the host before and after them.
func (b *between) Phases() int { return b.Codec.Phases() + 2 }

// Prepare describes the sum inside the host, what the codec does, and the gathering inside the host.
func (b *between) Prepare(k, phase int) (comm.Call, comm.Mem, comm.Mem, error) {
	call := comm.Call{Kind: comm.ReduceScatter, Op: comm.Sum, DType: npu.F32, Elems: b.mem[k].Elems}
	switch phase {
	case 0:
		return call, b.own[k], b.mem[k], nil
	case b.Codec.Phases() + 1:
		if err := b.Codec.Finish(k); err != nil {
			return comm.Call{}, comm.Mem{}, comm.Mem{}, err
		}
		b.mark(k)
		call.Kind, call.Op = comm.AllGather, 0
		return call, b.mem[k], b.own[k], nil
	}
	return b.Codec.Prepare(k, phase-1)
}

// finite is a Codec that knows whether it decoded a bucket to finite numbers.
type finite interface{ Finite(k int) bool }

// mark makes the first number of a part that is not finite NaN, so that all ranks of the host find that out from one number of each part. Ranks of other
// hosts with this part have decoded, and mark, the same.
func (b *between) mark(k int) {
	x := comm.View[float32](b.own[k])
	if len(x) == 0 {
		return
	}
	ok := true
	if f, knows := b.Codec.(finite); knows {
		ok = f.Finite(k)
	} else {
		for _, v := range x {
			ok = ok && v-v == 0
		}
	}
	if !ok {
		x[0] = float32(math.NaN())
	}
}

// Finish looks for marks.
func (b *between) Finish(k int) error {
	x := comm.View[float32](b.mem[k])
	per := len(x) / b.each
	b.spoiled[k] = false
	for i := 0; per > 0 && i < len(x); i += per {
		b.spoiled[k] = b.spoiled[k] || !(x[i]-x[i] == 0)
	}
	if b.spoiled[k] { // a mark may be in padding, which holds zeros
		for _, g := range b.plan.Gaps(k) {
			clear(x[g.From : g.From+g.Elems])
		}
	}
	return nil
}

// Coded is what the codec did with the parts of this rank; what is not finite is found on all ranks.
func (b *between) Coded() Coded {
	c := b.Codec.Coded()
	c.NonFinite, c.Bucket = false, -1
	for k, spoiled := range b.spoiled {
		if spoiled {
			c.NonFinite, c.Bucket = true, k
			break
		}
	}
	return c
}

// owing is a codec with state of parameters (compress.State).
type owing interface {
	Residual(param int, dst []float32) bool
	Restore(param int, src []float32) error
}

// Residual copies what the codec owes of a parameter: zeros where its elements belong to other ranks of the host.
func (b *between) Residual(i int, dst []float32) bool {
	s, ok := b.Codec.(owing)
	if !ok || !s.Residual(i, nil) {
		return false
	}
	clear(dst)
	if p := b.pieces[i]; dst != nil && p.Elems > 0 {
		s.Residual(i, dst[p.From:p.From+p.Elems])
	}
	return true
}

// Restore gives the codec its elements of the residual of a parameter.
func (b *between) Restore(i int, src []float32) error {
	s, ok := b.Codec.(owing)
	if p := b.pieces[i]; ok && p.Elems > 0 {
		return s.Restore(i, src[p.From:p.From+p.Elems])
	}
	return nil
}

// CodecHosts says between how many hosts, of how many ranks each, the codec works: each rank encodes 1/each of the gradients, and hosts ranks hold the residual
// of a number. Where it works between all ranks, each is 1 and hosts their number.
func (e *Engine) CodecHosts() (hosts, each int) {
	if b, ok := e.codec.(*between); ok {
		return b.hosts, b.each
	}
	return e.comm.Size(), 1
}
