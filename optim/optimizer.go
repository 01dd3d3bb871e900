package optim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Optimizer steps flat memory on a device. All its methods that take a stream only enqueue; give it one stream, or order
// the streams with events. It is not safe for concurrent use.
type Optimizer struct {
	dev   npu.Device
	cfg   Config
	rule  *rule
	segs  []segment
	count int64

	bufs    []npu.Buffer
	kernels map[string]npu.Kernel
	scratch npu.Ptr // workspace that all kernels share: they run on one stream

	hyper     npu.Ptr // one vector per group, hyperStride bytes apart
	hyperRing [4]hyperSlot
	hyperNext int

	sums      npu.Ptr        // LARS, LAMB: sums of squares, weight then gradient or step, for each adaptive tensor
	zeros     []byte         // never written; as long as the longest reset; page-locked
	norm      npu.Ptr        // f64[2] of Measure
	normHost  []byte         // its copy, 16 bytes; page-locked
	measures  [][]npu.Launch // per segment
	stateSize int64
}

type segment struct {
	Segment
	state   []npu.Ptr // in the order of Config.States; none without gradient
	average npu.Ptr
	step    []npu.Launch
	sums    npu.Ptr // this segment's part of Optimizer.sums
	nSums   int     // number of adaptive tensors
	runs    []run
	sumsPos int
}

// New checks the configuration, allocates state, and compiles and binds the kernels. On error nothing stays allocated.
func New(dev npu.Device, cfg Config, segments []Segment) (*Optimizer, error) {
	if err := errors.Join(cfg.Validate(), validateSegments(segments, len(cfg.Groups), cfg.EMA.On())); err != nil {
		return nil, err
	}
	r, err := cfg.rule()
	if err != nil {
		return nil, err
	}
	o := &Optimizer{dev: dev, cfg: cfg.clone(), rule: r, kernels: map[string]npu.Kernel{}}
	for _, s := range segments {
		s.Tensors = slices.Clone(s.Tensors)
		o.segs = append(o.segs, segment{Segment: s.withTensors()})
	}
	err = o.allocate()
	if err == nil {
		err = o.bindAll()
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// allocate makes the state vectors and the small memories.
func (o *Optimizer) allocate() error {
	single := func(group int) bool { return o.rule.adapted(&o.cfg, group) }
	adaptive, longest := 0, 16
	for i := range o.segs {
		s := &o.segs[i]
		if o.cfg.EMA.On() {
			p, err := o.alloc("average of "+s.Name, 4*s.Elems)
			if err != nil {
				return err
			}
			s.average, o.stateSize = p, o.stateSize+4*s.Elems
		}
		if s.Grad.IsNil() {
			continue
		}
		for _, name := range o.cfg.States() {
			p, err := o.alloc(name+" of "+s.Name, 4*s.Elems)
			if err != nil {
				return err
			}
			s.state = append(s.state, p)
			o.stateSize += 4 * s.Elems
		}
		s.runs = s.Segment.runs(single)
		s.sumsPos = adaptive
		for _, r := range s.runs {
			if single(r.group) {
				s.nSums++
			}
		}
		adaptive += s.nSums
		longest = max(longest, 32*s.nSums)
	}
	var err error
	if o.zeros, err = o.allocHost("zeros", int64(longest)); err != nil {
		return err
	}
	if o.normHost, err = o.allocHost("gradient norm", 16); err != nil {
		return err
	}
	if o.norm, err = o.alloc("gradient norm", 16); err != nil {
		return err
	}
	if o.hyper, err = o.alloc("hyper-parameters", o.hyperBytes()); err != nil {
		return err
	}
	if o.rule.adapts != nil {
		// One pair more: launches that do not adapt still name a place for the norms.
		if o.sums, err = o.alloc("norms of "+o.cfg.Rule, int64(32*(adaptive+1))); err != nil {
			return err
		}
		for i := range o.segs {
			o.segs[i].sums = o.sums.At(int64(32 * (1 + o.segs[i].sumsPos)))
		}
	}
	return o.initHyper()
}

func (o *Optimizer) alloc(what string, bytes int64) (npu.Ptr, error) {
	b, err := o.dev.Alloc(bytes)
	if err != nil {
		return npu.Ptr{}, fmt.Errorf("optim: allocate %s: %w", what, err)
	}
	o.bufs = append(o.bufs, b)
	return npu.Ptr{Buf: b}, nil
}

// allocHost allocates host memory that copies may use at any time.
func (o *Optimizer) allocHost(what string, bytes int64) ([]byte, error) {
	b, err := npu.AllocHost(o.dev, bytes)
	if err != nil {
		return nil, fmt.Errorf("optim: allocate %s: %w", what, err)
	}
	o.bufs = append(o.bufs, b)
	return b.Host(), nil
}

// Segments is the number of segments.
func (o *Optimizer) Segments() int { return len(o.segs) }

// Config returns a copy of the optimizer's configuration.
func (o *Optimizer) Config() Config { return o.cfg.clone() }

// Count is the number of steps begun so far: t of Adam's bias correction. A skipped step does not count.
func (o *Optimizer) Count() int64 { return o.count }

// SetCount restores the count from a checkpoint.
func (o *Optimizer) SetCount(n int64) { o.count = max(n, 0) }

// Bytes is the device memory of the state vectors.
func (o *Optimizer) Bytes() int64 { return o.stateSize }

// Step enqueues the step of all segments. Call Begin first.
func (o *Optimizer) Step(s npu.Stream) error {
	for i := range o.segs {
		if err := o.StepSegment(s, i); err != nil {
			return err
		}
	}
	return nil
}

// StepSegment enqueues the step of one segment, as soon as its gradients are complete. Call Begin first, and each segment once per
// step. Allocates nothing.
func (o *Optimizer) StepSegment(s npu.Stream, i int) error {
	g := &o.segs[i]
	if g.nSums > 0 && o.rule.adds {
		if err := s.CopyIn(g.sums, o.zeros[:32*g.nSums]); err != nil {
			return fmt.Errorf("optim: step of segment %d (%s): %w", i, g.Name, err)
		}
	}
	if err := s.Run(g.step); err != nil {
		return fmt.Errorf("optim: step of segment %d (%s): %w", i, g.Name, err)
	}
	return nil
}

// Close frees the state and the kernels. The stream must be idle. Idempotent.
func (o *Optimizer) Close() error {
	var errs []error
	for _, k := range o.kernels {
		errs = append(errs, k.Close())
	}
	for i := range o.hyperRing {
		if ev := o.hyperRing[i].sent; ev != nil {
			errs = append(errs, ev.Close())
		}
		o.hyperRing[i] = hyperSlot{}
	}
	for _, b := range o.bufs {
		errs = append(errs, b.Free())
	}
	o.kernels, o.bufs, o.segs = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("optim: close: %w", err)
	}
	return nil
}

// drain waits for a stream and returns its error.
func drain(s npu.Stream) error {
	if err := s.Sync(context.Background()); err != nil {
		return fmt.Errorf("optim: earlier work on stream %s: %w", s.Name(), err)
	}
	return nil
}
