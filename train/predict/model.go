package predict

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/gotrain/gotrain/graph/models"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data/images"
)

// Model is an open network. All methods may be called concurrently.
type Model struct {
	path      string
	state     checkpoint.State
	network   checkpoint.Network
	described bool
	classes   []string
	build     models.Network
	all       []input // fields of the network
	inputs    []input // those that are not targets
	prep      *images.Preparer

	eng     *engine
	free    chan *slot    // room for inputs
	decoder chan struct{} // one token a picture that is being prepared

	mu      sync.Mutex
	closed  bool
	closing chan struct{} // closed when Close begins
	calls   sync.WaitGroup
	over    chan struct{} // closed when Close has ended
	err     error         // of Close
}

// ErrClosed means that the model was closed.
var ErrClosed = errors.New("predict: the model is closed")

// start opens the device and everything on it.
func (m *Model) start(w train.Weights, o *options) error {
	eng, err := newEngine(m, w, o)
	m.eng = eng
	if err != nil {
		return err
	}
	workers := o.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	m.closing, m.over = make(chan struct{}), make(chan struct{})
	m.decoder = make(chan struct{}, workers)
	room := 2*o.batch + workers
	m.free, eng.queue = make(chan *slot, room), make(chan *slot, room)
	for range room {
		s, err := eng.newSlot(m.inputs)
		if err != nil {
			return err
		}
		m.free <- s
	}
	eng.ended = make(chan struct{})
	go eng.run(m.free)
	return nil
}

// Predict computes the network for some inputs and returns one result for each, in order. See the package's comment for its errors.
func (m *Model) Predict(ctx context.Context, inputs ...Input) ([]Result, error) {
	if !m.enter() {
		return nil, ErrClosed
	}
	defer m.calls.Done()
	out := make([]Result, len(inputs))
	if len(inputs) == 1 {
		err := m.one(ctx, inputs[0], &out[0])
		if err != nil {
			return nil, err
		}
		return out, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(len(inputs), cap(m.free)) {
		wg.Go(func() {
			for i := range next {
				if err := m.one(ctx, inputs[i], &out[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range inputs {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// enter counts a call, unless the model is closed.
func (m *Model) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.calls.Add(1)
	return true
}

// one predicts one input. The error ends the call; what is wrong with the input alone is in the result.
func (m *Model) one(ctx context.Context, in Input, out *Result) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var s *slot
	select {
	case s = <-m.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.closing:
		return ErrClosed
	}
	select {
	case m.decoder <- struct{}{}:
	case <-ctx.Done():
		m.free <- s
		return context.Cause(ctx)
	case <-m.closing:
		m.free <- s
		return ErrClosed
	}
	err := errEmpty
	if in.fill != nil {
		err = in.fill(m, s.fields)
	}
	<-m.decoder
	if err != nil {
		m.free <- s
		out.Err = err
		return nil
	}
	s.reset()
	m.eng.queue <- s // has room for all
	select {
	case <-s.done:
	case <-ctx.Done():
		if s.abandon() {
			return context.Cause(ctx) // the engine frees it
		}
		<-s.done
	}
	*out = Result{Logits: s.logits, Err: s.err, names: m.classes}
	s.logits, s.err = nil, nil
	m.free <- s
	if out.Err != nil && !errors.Is(out.Err, errNotFinite) {
		return out.Err // of the device: no other input fares better
	}
	return nil
}

var errEmpty = errors.New("predict: an Input without contents\nhint: make it with Bytes, File, Image, Tensor or Fields")

// Close ends the model; see the package's comment. It is idempotent.
func (m *Model) Close() error {
	m.mu.Lock()
	first := !m.closed
	if m.closed = true; first {
		close(m.closing)
	}
	m.mu.Unlock()
	if !first {
		<-m.over
		return m.err
	}
	m.calls.Wait()
	m.err = m.release()
	close(m.over)
	return m.err
}

func (m *Model) release() error {
	if m.eng == nil {
		return nil
	}
	return m.eng.close()
}

// Path is the folder of the checkpoint, or the path of the weights.
func (m *Model) Path() string { return m.path }

// State is the state of the training in the checkpoint: its step and metrics, for example. It is empty for weights without a checkpoint.
func (m *Model) State() checkpoint.State { return m.state }

// Network describes the network.
func (m *Model) Network() checkpoint.Network { return m.network }

// Classes are the names of the classes by label; nil: they have none.
func (m *Model) Classes() []string { return m.classes }

// Outputs is the number of logits.
func (m *Model) Outputs() int { return m.eng.outputs }

// Pictures says how pictures are prepared; ok is false if the network does not read pictures, or nothing says how.
func (m *Model) Pictures() (p images.Preparation, ok bool) {
	if m.prep == nil {
		return p, false
	}
	return m.prep.Preparation(), true
}

// Info describes the device.
func (m *Model) Info() npu.Info { return m.eng.dev.Info() }

// Compute is the dtype of activations.
func (m *Model) Compute() npu.DType { return m.eng.compute }

// Stats are numbers of the batches computed so far.
func (m *Model) Stats() Stats { return m.eng.stats.read() }
