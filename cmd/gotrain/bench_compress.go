package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/npu"
)

// encodedSums makes cfg measure all-reduces that travel encoded, each as a single bucket of gradients: nothing overlaps.
func encodedSums(cfg *perf.Config, word string, c comm.Communicator) error {
	for i, n := range cfg.Sizes { // buckets are padded
		p, err := oneBucket(n/4, c.Size())
		if err != nil {
			return err
		}
		cfg.Sizes[i] = 4 * p.Buckets[0].Elems
	}
	cfg.Tolerance = func(w int, top float64) float64 { return tolerance(word, w, top) }
	cfg.Reducer = func(m comm.Mem) (perf.Reduction, error) { return encode(word, c, m) }
	return nil
}

// tolerance is how far an encoded sum of w numbers of at most top may be off: each number and the sum are rounded.
func tolerance(word string, w int, top float64) float64 {
	sum := float64(w) * top
	switch word {
	case "f16": // half a unit of the 11th bit, twice
		return sum / 1024
	case "bf16":
		return sum / 256
	}
	// int8: half a step of 1/127 in both phases, and as much again that error feedback adds from the call before.
	return 1.01 * 4 * sum / 254
}

// oneBucket is a plan with one bucket of at least n elements.
func oneBucket(n int64, world int) (*bucket.Plan, error) {
	n = max(1, n)
	p, err := bucket.New([]bucket.Param{{Name: "bench", Elems: n, DType: npu.F32}}, bucket.Config{World: world, FirstBytes: 4 * n, CapBytes: 4 * n})
	if err == nil && len(p.Buckets) != 1 {
		err = fmt.Errorf("%d elements make %d buckets", n, len(p.Buckets))
	}
	return p, err
}

// encodedSum reduces one span of memory by a codec.
type encodedSum struct {
	codec  ddp.Codec
	c      comm.Communicator
	groups []comm.Communicator // by phase, where the codec works between hosts only; else c serves all
	step   int64
}

func encode(word string, c comm.Communicator, m comm.Mem) (*encodedSum, error) {
	codec, err := compress.New(word, compress.Options{})
	if err != nil {
		return nil, err
	}
	p, err := oneBucket(m.Elems, c.Size())
	if err != nil {
		return nil, err
	}
	if got := p.Buckets[0].Elems; got != m.Elems {
		return nil, fmt.Errorf("a bucket of %d elements for memory of %d", got, m.Elems)
	}
	if _, each := comm.Even(c); each < 2 { // nothing overlaps, so one group serves all phases
		return &encodedSum{codec: codec, c: c}, codec.Open(p, []comm.Mem{m}, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	used, groups, err := ddp.OpenCodec(ctx, codec, p, []comm.Mem{m}, c)
	if err != nil {
		return nil, err
	}
	return &encodedSum{codec: used, c: c, groups: groups}, nil
}

// Reduce does what the engine does with a bucket of a step.
func (e *encodedSum) Reduce(ctx context.Context) error {
	e.step++
	e.codec.Begin(e.step, 1)
	for phase := range e.codec.Phases() {
		group := e.c
		if e.groups != nil {
			group = e.groups[phase]
		}
		call, out, in, err := e.codec.Prepare(0, phase)
		if err == nil {
			err = comm.Wait(ctx)(comm.Do(ctx, group, call, out, in))
		}
		if err != nil {
			return err
		}
	}
	if err := e.codec.Finish(0); err != nil {
		return err
	}
	if e.codec.Coded().NonFinite {
		return errors.New("a sum is not finite")
	}
	e.codec.Settle(true)
	return nil
}

// Close frees the codec's buffers, and closes its groups.
func (e *encodedSum) Close() error {
	errs := []error{e.codec.Close()}
	for i := len(e.groups) - 1; i >= 0; i-- {
		if g := e.groups[i]; g != e.c {
			errs = append(errs, g.Close())
		}
	}
	return errors.Join(errs...)
}
