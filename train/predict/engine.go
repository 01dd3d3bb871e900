package predict

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/graph/plan"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// engine owns the device. One goroutine, run, computes; until it starts and after it ends, the goroutine that opens or closes the model.
type engine struct {
	place   string // for messages
	build   models.Network
	all     []input
	dev     npu.Device
	stream  npu.Stream
	compute npu.DType
	sizes   []int // of batches, ascending
	progs   map[int]*program
	mem     graph.Memory
	layouts map[string]npu.Layout
	bufs    []npu.Buffer
	outputs int
	folds   []plan.Fold // batch normalisations that convolutions have taken in
	noFold  bool        // for tests
	conv    algorithms

	queue chan *slot
	ended chan struct{} // closed when run has ended; nil: it never ran
	stats stats
}

// Stats are numbers of the batches computed so far.
type Stats struct {
	Batches  int64 // computed
	Inputs   int64 // in them
	Filled   int64 // rows of them that did not count
	Compiled int   // sizes of batches
}

type stats struct {
	mu sync.Mutex
	Stats
}

func (s *stats) add(batch, rows int) {
	s.mu.Lock()
	s.Batches, s.Inputs, s.Filled = s.Batches+1, s.Inputs+int64(rows), s.Filled+int64(batch-rows)
	s.mu.Unlock()
}

func (s *stats) read() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Stats
}

// newEngine opens the device and compiles the largest batch, which decides the layout of the weights. The engine that comes with an error must be closed.
func newEngine(m *Model, w train.Weights, o *options) (*engine, error) {
	e := &engine{place: m.path, build: m.build, all: m.all, progs: map[int]*program{}, sizes: sizes(o.batch)}
	if err := e.openDevice(m.network.Compute, o); err != nil {
		return e, err
	}
	if err := e.multiply(m.state.Kernels); err != nil {
		return e, err
	}
	e.noFold, e.conv = o.noFold, newAlgorithms(o, m.state.Kernels)
	var err error
	if e.stream, err = e.dev.NewStream("compute"); err != nil {
		return e, err
	}
	p, err := e.compile(o.batch)
	if err != nil {
		return e, err
	}
	e.progs[o.batch] = p
	e.layouts, e.folds = p.prog.Layouts(), p.prog.Plan().Folds
	for _, x := range p.prog.Weights() {
		at, err := e.alloc(x.Bytes)
		if err != nil {
			return e, err
		}
		e.mem.Weights = append(e.mem.Weights, at)
	}
	for _, x := range p.prog.States() {
		at, err := e.alloc(x.Bytes)
		if err != nil {
			return e, err
		}
		e.mem.States = append(e.mem.States, at)
	}
	if err := e.fill(p.prog, w); err != nil {
		return e, err
	}
	if err := e.bind(p); err != nil {
		return e, err
	}
	if n := len(m.classes); n > 0 && n > e.outputs {
		return e, fmt.Errorf("predict: %s: the network has %d outputs for %d classes", e.place, e.outputs, n)
	}
	return e, nil
}

// sizes are the sizes of batches: powers of two, then the largest.
func sizes(most int) []int {
	var out []int
	for n := 1; n < most; n *= 2 {
		out = append(out, n)
	}
	return append(out, most)
}

// choose is the size of the batch for a number of waiting inputs: the next larger one if most of it is used, otherwise the next smaller one, and the rest
// waits.
func choose(sizes []int, waiting int) int {
	i, exact := slices.BinarySearch(sizes, waiting)
	switch {
	case i == len(sizes):
		return sizes[len(sizes)-1]
	case exact || i == 0 || 4*waiting >= 3*sizes[i]:
		return sizes[i]
	}
	return sizes[i-1]
}

func (e *engine) openDevice(trained string, o *options) (err error) {
	e.compute = o.compute
	if e.compute == npu.Invalid {
		if e.compute, err = npu.ParseDType(trained); err != nil || trained == "" {
			e.compute = npu.F32
		}
	}
	n := npu.Options{Threads: o.threads, Compute: e.compute, Extra: o.extra}
	if place, err := launch.Place(launch.Identity{LocalWorld: 1}, os.LookupEnv); n.Threads == 0 && err == nil && place.Why != "" {
		n.Threads = place.Threads // a device counts cores, not quotas
		slog.Info(place.Why)
	}
	var passed error
	if o.device != "" {
		e.dev, err = npu.Open(o.device, n)
	} else if e.dev, passed, err = npu.OpenBest(n); passed != nil && err == nil {
		slog.Warn("computing on a slower device, because a better one cannot be opened", "device", e.dev.Info().Name, "reason", passed)
	}
	if err != nil {
		e.dev = nil
		return launch.WithCode(launch.ExitUnavailable, fmt.Errorf("predict: %w", err))
	}
	if err := e.dev.Info().Computes(e.compute); err != nil {
		if o.compute != npu.Invalid {
			return fmt.Errorf("predict: %w", err)
		}
		slog.Warn("computing in f32, because the device lacks the type of the training", "reason", err)
		e.compute = npu.F32
	}
	return nil
}

// multiply has products of bf16 computed as in the training that made the checkpoint, where the device can and its options do not say otherwise.
func (e *engine) multiply(was *checkpoint.Kernels) error {
	m, ok := e.dev.(npu.Multiplier)
	if !ok || was == nil || was.Products == "" || e.compute != npu.BF16 {
		return nil
	}
	if p, fixed := m.Products(); p == "" || fixed {
		return nil
	}
	if err := m.UseProducts(npu.Products(was.Products)); err != nil {
		return fmt.Errorf("predict: %w", err)
	}
	return nil
}

func (e *engine) alloc(n int64) (npu.Ptr, error) {
	b, err := e.dev.Alloc(n)
	if err != nil {
		return npu.Ptr{}, fmt.Errorf("predict: %d bytes on %s: %w", n, e.dev.Info().Name, err)
	}
	e.bufs = append(e.bufs, b)
	return npu.Ptr{Buf: b}, nil
}

// fill copies weights and running statistics to the device.
func (e *engine) fill(prog *graph.Program, w train.Weights) (err error) {
	mover := graph.NewMover(e.dev, e.stream)
	defer func() { err = errors.Join(err, mover.Close()) }()
	r := &reader{place: e.place, weights: w}
	if err := r.fold(prog, e.folds); err != nil {
		return err
	}
	load := func(name string, at npu.Ptr, d npu.Desc) error {
		v, err := r.read(name, d)
		if err != nil {
			return err
		}
		if err := mover.In(context.Background(), at, d, bytesOf(v)); err != nil {
			return fmt.Errorf("predict: %s: %w", name, err)
		}
		return nil
	}
	for i, x := range prog.Weights() {
		if err := load(x.Name, e.mem.Weights[i], x.Desc); err != nil {
			return err
		}
	}
	for i, x := range prog.States() {
		if err := load(x.Name, e.mem.States[i], x.Desc); err != nil {
			return err
		}
	}
	return nil
}

// newSlot makes room for one input, in memory that the device copies asynchronously.
func (e *engine) newSlot(fields []input) (*slot, error) {
	s := &slot{done: make(chan struct{}, 1)}
	for _, f := range fields {
		b, err := npu.AllocHost(e.dev, int64(f.bytes))
		if err != nil {
			return nil, fmt.Errorf("predict: %w", err)
		}
		e.bufs = append(e.bufs, b)
		s.fields = append(s.fields, b.Host()[:f.bytes])
	}
	return s, nil
}

// run computes batches of what waits, until the queue is closed. Slots that nobody waits for go back to free.
func (e *engine) run(free chan<- *slot) {
	defer close(e.ended)
	most := e.sizes[len(e.sizes)-1]
	var batch []*slot
	for {
		if len(batch) == 0 {
			s, ok := <-e.queue
			if !ok {
				return
			}
			batch = append(batch, s)
		}
		for open := true; open && len(batch) < most; {
			select {
			case s, ok := <-e.queue:
				if open = ok; ok {
					batch = append(batch, s)
				}
			default:
				open = false
			}
		}
		batch = slices.DeleteFunc(batch, func(s *slot) bool {
			gone := s.state.Load() == abandoned
			if gone {
				free <- s
			}
			return gone
		})
		if len(batch) == 0 {
			continue
		}
		n := min(choose(e.sizes, len(batch)), len(batch))
		e.predict(batch[:n], choose(e.sizes, len(batch)), free)
		batch = slices.Delete(batch, 0, n)
	}
}

// predict computes one batch and hands out its rows.
func (e *engine) predict(batch []*slot, size int, free chan<- *slot) {
	logits, err := e.forward(batch, size)
	for i, s := range batch {
		var row []float32
		failed := err
		if err == nil {
			row = slices.Clone(logits[i*e.outputs:][:e.outputs])
			if slices.ContainsFunc(row, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }) {
				row, failed = nil, errNotFinite
			}
		}
		if !s.finish(row, failed) {
			free <- s
		}
	}
}

var errNotFinite = errors.New("predict: the outputs of the network are not finite")

// close waits for run and releases everything.
func (e *engine) close() error {
	if e.ended != nil {
		close(e.queue)
		<-e.ended
	}
	var errs []error
	for _, p := range e.progs {
		errs = append(errs, p.prog.Close())
	}
	for _, b := range e.bufs {
		errs = append(errs, b.Free())
	}
	if e.stream != nil {
		errs = append(errs, e.stream.Close())
	}
	if e.dev != nil {
		errs = append(errs, e.dev.Close())
	}
	e.progs, e.bufs, e.stream = nil, nil, nil
	return errors.Join(errs...)
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
