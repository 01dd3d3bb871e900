// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train"
)

// options say what is computed, and where.
type options struct {
	shape      string
	batch, seq int
	dtype      npu.DType
	device     string
	threads    int
	products   string // of bf16: the cpu device's option bf16
	algorithm  string // of convolutions, a value of train.conv_algorithm
}

// extra are the options of the device.
func (o options) extra() map[string]string {
	if o.products == "" {
		return nil
	}
	return map[string]string{"bf16": o.products}
}

// model is a compiled step with its optimizer.
type model struct {
	o      options
	dev    npu.Device
	prog   *graph.Program
	opt    *optim.Optimizer
	stream npu.Stream
	bufs   []npu.Buffer
	said   string // which algorithms convolutions use; "": there is no choice
}

func open(ctx context.Context, o options) (*model, error) {
	b, limits, err := build(o)
	if err != nil {
		return nil, err
	}
	m := &model{o: o}
	if err := m.compile(ctx, b); err != nil {
		m.close()
		return nil, err
	}
	if err := m.feed(limits); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *model) compile(ctx context.Context, b *graph.Builder) (err error) {
	if m.dev, err = npu.Open(m.o.device, npu.Options{Threads: m.o.threads, Extra: m.o.extra()}); err != nil {
		return err
	}
	if m.stream, err = m.dev.NewStream("compute"); err != nil {
		return err
	}
	g, err := b.Lower()
	if err != nil {
		return err
	}
	opts := graph.Options{Compute: m.o.dtype}
	if opts.Algorithm, err = m.choose(ctx, g, opts); err != nil {
		return err
	}
	if m.prog, err = graph.CompileGraph(g, m.dev, opts); err != nil {
		return err
	}
	return m.bind()
}

// choose returns the algorithms of convolutions, as a run with this setting has them; nil: direct.
func (m *model) choose(ctx context.Context, g *plan.Graph, opts graph.Options) (func(npu.Op) string, error) {
	if m.o.algorithm == train.DirectConv {
		return nil, nil
	}
	p, err := plan.Build(g, m.dev, opts)
	if err != nil {
		return nil, err
	}
	var ops []npu.Op
	for _, s := range p.Steps {
		if s.Host == nil && len(npu.Algorithms(m.dev, s.Op)) > 1 {
			ops = append(ops, s.Op)
		}
	}
	c := tune.Forced(m.dev, ops, train.WinogradConv)
	if m.o.algorithm == train.AutoConv {
		var rep tune.Report
		if c, rep, err = new(tune.Tuner).Choose(ctx, m.dev, m.stream, ops); err != nil || rep.Lost != nil {
			return nil, errors.Join(err, rep.Lost)
		}
	}
	m.said = c.Sentence()
	return c.Algorithm, nil
}

// bind gives the program and AdamW memory, with random weights.
func (m *model) bind() error {
	var mem graph.Memory
	var segs []optim.Segment
	draw := rand.New(rand.NewPCG(1, 2))
	for _, w := range m.prog.Weights() {
		weight, err := m.alloc(w.Bytes)
		if err != nil {
			return err
		}
		grad, err := m.alloc(w.Bytes)
		if err != nil {
			return err
		}
		raw := make([]byte, w.Bytes)
		for i := 0; i+4 <= len(raw); i += 4 {
			binary.NativeEndian.PutUint32(raw[i:], math.Float32bits(float32(draw.NormFloat64()*0.02)))
		}
		if err := m.stream.CopyIn(weight, raw); err != nil {
			return err
		}
		mem.Weights, mem.Grads = append(mem.Weights, weight), append(mem.Grads, grad)
		segs = append(segs, optim.Segment{Name: w.Name, Weight: weight, Grad: grad, Elems: w.Bytes / 4,
			Tensors: []optim.Tensor{{Name: w.Name, Elems: w.Bytes / 4, Group: optim.GroupOf(len(w.Desc.Shape))}}})
	}
	for _, st := range m.prog.States() {
		at, err := m.alloc(st.Bytes)
		if err != nil {
			return err
		}
		mem.States = append(mem.States, at)
	}
	if err := m.prog.Bind(mem); err != nil {
		return err
	}
	var err error
	m.opt, err = optim.New(m.dev, optim.Default(optim.AdamW, 0.01), segs)
	return err
}

func (m *model) alloc(n int64) (npu.Ptr, error) {
	b, err := m.dev.Alloc(n)
	if err != nil {
		return npu.Ptr{}, err
	}
	m.bufs = append(m.bufs, b)
	return npu.Ptr{Buf: b}, nil
}

// feed fills the inputs: with random integers below their limits, or with normal numbers where there is none. The loss is a mean.
func (m *model) feed(limits map[string]int) error {
	draw := rand.New(rand.NewPCG(3, 4))
	for name, limit := range limits {
		at, d, ok := m.prog.Input(name)
		if !ok {
			return fmt.Errorf("the program has no input %s", name)
		}
		raw := make([]byte, 4*d.Shape.Elems())
		for i := 0; i < len(raw); i += 4 {
			bits := math.Float32bits(float32(draw.NormFloat64()))
			if limit > 0 {
				bits = uint32(draw.IntN(limit))
			}
			binary.NativeEndian.PutUint32(raw[i:], bits)
		}
		if err := m.stream.CopyIn(at, raw); err != nil {
			return err
		}
	}
	if at, _, ok := m.prog.Input(graph.LossScaleInput); ok {
		raw := binary.NativeEndian.AppendUint32(nil, math.Float32bits(1/float32(m.o.items())))
		if err := m.stream.CopyIn(at, raw); err != nil {
			return err
		}
	}
	return m.stream.Sync(context.Background())
}

// step runs forward, backward and AdamW and tells the time of each kind of kernel.
func (m *model) step(ctx context.Context) (map[string]time.Duration, error) {
	m.stream.Profile(true)
	if err := m.prog.RunSync(ctx, m.stream); err != nil {
		return nil, err
	}
	if err := m.opt.Begin(m.stream, 3e-4, 1); err != nil {
		return nil, err
	}
	if err := m.opt.Step(m.stream); err != nil {
		return nil, err
	}
	if err := m.stream.Sync(ctx); err != nil {
		return nil, err
	}
	kinds := map[string]time.Duration{}
	for _, s := range m.stream.Profile(false) {
		k := s.Launch.Kernel()
		kinds[kindOf(k.Op())+" "+k.Impl()] += s.Dur
	}
	return kinds, nil
}

// kindOf names what a kernel does; products are told apart by their place in training.
func kindOf(o npu.Op) string {
	name := o.Kind
	if o.Kind != npu.MatMul {
		return name
	}
	switch {
	case o.Attrs.Bool("ta"):
		return name + " dW"
	case o.Attrs.Bool("tb"):
		return name + " forward"
	}
	return name + " dX"
}

func (m *model) close() {
	if m.opt != nil {
		m.opt.Close()
	}
	if m.prog != nil {
		m.prog.Close()
	}
	if m.stream != nil {
		m.stream.Close()
	}
	for _, b := range m.bufs {
		b.Free()
	}
	if m.dev != nil {
		m.dev.Close()
	}
}
