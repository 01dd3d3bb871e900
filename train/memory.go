package train

import (
	"fmt"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
)

// store holds parameters and running statistics on the device. Parameters are stored in the order and at the offsets of the gradient buckets, so that
// the optimizer updates a whole bucket as flat memory.
type store struct {
	bufs    []npu.Buffer
	weights []npu.Ptr // by weight of the program
	states  []npu.Ptr // by state of the program, in one buffer
	before  npu.Ptr   // their values before the current step
	each    int64     // total bytes of all states
	changed bool      // the states may differ from the copy in before: it was made, and later work may have run
	made    func() error
	bytes   int64
}

// slot is the place of a weight's gradient.
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

// newStore allocates memory for the program's weights and states. slots has the place of each trained weight; the others get separate memory.
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

// aligned rounds n up to an alignment that suits every kernel.
func aligned(n int64) int64 { return (n + plan.Align - 1) / plan.Align * plan.Align }

// remember enqueues a copy of all states, because a step changes them before it is known to complete. The stream must be idle.
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

// recall enqueues the reverse copy, unless the stream skipped the first copy and hence everything after it. The stream must be idle.
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
	have, model := map[string]tensor{}, t.model()
	if p == t.eval {
		model = t.evaluatedModel()
	}
	for _, x := range model {
		have[x.name] = x
	}
	find := func(what, name string, d npu.Desc) npu.Ptr {
		x, ok := have[name]
		switch {
		case err != nil:
		case !ok:
			err = fmt.Errorf("train: the evaluation network has the %s %q, which the training network lacks", what, name)
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
		err = fmt.Errorf("%w\nhint: add the same parameters in the model for both values of Builder.Training", err)
	}
	return m, err
}
