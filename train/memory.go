package train

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// store is where parameters and running statistics live on the device. Parameters stand in the order and at the offsets of the gradient
// buckets, so that an optimizer steps a whole bucket as flat memory.
type store struct {
	bufs    []npu.Buffer
	weights []npu.Ptr // by weight of the program
	states  []npu.Ptr // by state of the program, in one buffer
	before  npu.Ptr   // what they were before the step under way
	each    int64     // bytes of all states together
	changed bool      // the states may not be what before holds: its copy was made, and what came after it may have run
	made    func() error
	bytes   int64
}

// slot says where a weight's gradient lies.
type slot struct {
	bucket int
	offset int64 // bytes
}

func (s *store) alloc(dev npu.Device, n int64, what string) (npu.Ptr, error) {
	b, err := dev.Alloc(max(n, 64))
	if err != nil {
		return npu.Ptr{}, fmt.Errorf("train: %d bytes for %s on %s: %w", n, what, dev.Info().Name, err)
	}
	s.bufs = append(s.bufs, b)
	s.bytes += b.Bytes()
	return npu.Ptr{Buf: b}, nil
}

// newStore allocates memory for the program's weights and states. slots has the place of each weight that is trained; the others get memory of their own.
func newStore(dev npu.Device, p *graph.Program, slots map[int]slot, bucketBytes []int64) (*store, error) {
	s := &store{}
	flat := make([]npu.Ptr, len(bucketBytes))
	for k, n := range bucketBytes {
		var err error
		if flat[k], err = s.alloc(dev, n, fmt.Sprintf("the weights of bucket %d", k)); err != nil {
			return nil, err
		}
	}
	for i, w := range p.Weights() {
		at, ok := slots[i]
		if !ok {
			own, err := s.alloc(dev, w.Bytes, w.Name)
			if err != nil {
				return nil, err
			}
			s.weights = append(s.weights, own)
			continue
		}
		s.weights = append(s.weights, flat[at.bucket].At(at.offset))
	}
	for _, st := range p.States() {
		s.each += aligned(st.Bytes)
	}
	if s.each == 0 {
		return s, nil
	}
	now, err := s.alloc(dev, s.each, "running statistics")
	if err != nil {
		return nil, err
	}
	if s.before, err = s.alloc(dev, s.each, "running statistics before a step"); err != nil {
		return nil, err
	}
	s.made = func() error { s.changed = true; return nil }
	at := int64(0)
	for _, st := range p.States() {
		s.states = append(s.states, now.At(at))
		at += aligned(st.Bytes)
	}
	return s, nil
}

// aligned is n rounded up to what every kernel takes.
func aligned(n int64) int64 { return (n + plan.Align - 1) / plan.Align * plan.Align }

// remember enqueues a copy of all states, which a step changes before anybody knows whether it will be complete. The stream must be idle.
func (s *store) remember(stream npu.Stream) error {
	if s.each == 0 {
		return nil
	}
	s.changed = false
	if err := stream.Copy(s.before, s.states[0], s.each); err != nil {
		return err
	}
	return stream.Do(s.made)
}

// recall enqueues the way back, where a stream that passed over work has not passed over the copy already, and so over the rest. The stream must be idle.
func (s *store) recall(stream npu.Stream) error {
	if !s.changed {
		return nil
	}
	return stream.Copy(s.states[0], s.before, s.each)
}

// close frees everything.
func (s *store) close() error {
	for _, b := range s.bufs {
		if err := b.Free(); err != nil {
			return err
		}
	}
	s.bufs = nil
	return nil
}

// memory gives a program the weights and states of the store, by name.
func (t *Trainer) memory(p *pass) (m graph.Memory, err error) {
	have := map[string]tensor{}
	for _, x := range t.model() {
		have[x.name] = x
	}
	find := func(what, name string, d npu.Desc) npu.Ptr {
		x, ok := have[name]
		switch {
		case err != nil:
		case !ok:
			err = fmt.Errorf("train: the evaluation network has the %s %q, which the training network has not", what, name)
		case !x.desc.Equal(d):
			err = fmt.Errorf("train: the %s %q is %v in the evaluation network and %v in the training network", what, name, d, x.desc)
		}
		return x.at
	}
	for _, w := range p.prog.Weights() {
		m.Weights = append(m.Weights, find("parameter", w.Name, w.Desc))
	}
	for _, s := range p.prog.States() {
		m.States = append(m.States, find("state", s.Name, s.Desc))
	}
	m.Scratch = npu.Ptr{Buf: t.scratch}
	if err != nil {
		err = fmt.Errorf("%w\nhint: the model must add the same parameters whether Builder.Training or not", err)
	}
	return m, err
}
