package generate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"unsafe"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
)

// Weights are the parameters of a model by name, as float32 in the model's layout.
type Weights interface {
	Shape(name string) (shape []int, ok bool)
	Read(name string, dst []float32) error
}

// Options configure a Generator. The comment of a field gives its default after the last semicolon.
type Options struct {
	Device  string            // device family; "": cpu if it can be opened, else ref with a warning
	Threads int               // compute threads; 0: all cores of this process
	Extra   map[string]string // options of the device
	Compute npu.DType         // of activations and weights: F32, or BF16 or F16, which halve the memory traffic; F32
	Texts   int               // texts generated at the same time; 1
	Room    int               // maximum tokens of a text, prompt included; the model's context
	Chunk   int               // tokens of each prompt to read at a time; 64
	Profile bool              // times every kernel that writes, see Stats.Kernels; false
}

// Generator is a model on a device. It may be used by one goroutine at a time.
type Generator struct {
	config       llama.Config
	opt          Options
	dev          npu.Device
	stream       npu.Stream
	prompt, step *program
	bufs         []npu.Buffer
	newest       [][]float32 // logits [V] by text, in memory of the program that made them until it runs again
}

// New reads the weights and prepares the programs. The caller must close the Generator; w is no longer needed after New returns.
func New(w Weights, c llama.Config, o Options) (*Generator, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	o.Texts, o.Chunk = max(o.Texts, 1), max(o.Chunk, 0)
	if o.Room <= 0 {
		o.Room = c.Context
	}
	if o.Chunk == 0 {
		o.Chunk = min(64, o.Room)
	}
	if o.Compute == npu.Invalid {
		o.Compute = npu.F32
	}
	g := &Generator{config: c, opt: o, newest: make([][]float32, o.Texts)}
	if err := g.open(w); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Generator) open(w Weights) (err error) {
	if g.dev, err = openDevice(g.opt); err != nil {
		return err
	}
	if g.stream, err = g.dev.NewStream("compute"); err != nil {
		return err
	}
	// Speed matters for one token at a time, so that program decides the layout of the weights.
	if g.step, err = g.compile(1, nil); err != nil {
		return err
	}
	if g.prompt, err = g.compile(g.opt.Chunk, g.step.prog.Layouts()); err != nil {
		return err
	}
	mem, err := g.memory()
	if err != nil {
		return err
	}
	if err := g.fill(w, mem); err != nil {
		return err
	}
	for _, p := range []*program{g.step, g.prompt} {
		if err := p.bind(mem); err != nil {
			return err
		}
		if err := p.prog.Prepare(g.stream); err != nil {
			return err
		}
	}
	return g.stream.Sync(context.Background())
}

func openDevice(o Options) (npu.Device, error) {
	n := npu.Options{Threads: o.Threads, Compute: o.Compute, Extra: o.Extra}
	var dev npu.Device
	var passed, err error
	if o.Device != "" {
		dev, err = npu.Open(o.Device, n)
	} else if dev, passed, err = npu.OpenBest(n); passed != nil && err == nil {
		slog.Warn("computing on a slower device, because a better one cannot be opened", "device", dev.Info().Name, "reason", passed)
	}
	if err != nil {
		return nil, err
	}
	if err := dev.Info().Computes(o.Compute); err != nil {
		return nil, errors.Join(fmt.Errorf("generate: %w", err), dev.Close())
	}
	return dev, nil
}

// memory allocates weights and states.
func (g *Generator) memory() (mem graph.Memory, err error) {
	var weights, states []int64
	for _, x := range g.step.prog.Weights() {
		weights = append(weights, x.Bytes)
	}
	for _, s := range g.step.prog.States() {
		states = append(states, s.Bytes)
	}
	if mem.Weights, err = g.alloc(weights); err != nil {
		return mem, err
	}
	mem.States, err = g.alloc(states)
	return mem, err
}

// align is where tensors in one buffer begin: a cache line, which is enough for every vector unit.
const align = 64

// alloc lays tensors into one buffer. Each in a buffer of its own, the small ones would be in small pages, which a processor reads at half the speed of large
// ones: translating addresses takes the other half.
func (g *Generator) alloc(sizes []int64) ([]npu.Ptr, error) {
	var offsets []int64
	n := int64(0)
	for _, s := range sizes {
		offsets = append(offsets, n)
		n += (s + align - 1) / align * align
	}
	b, err := g.dev.Alloc(n)
	if err != nil {
		return nil, fmt.Errorf("generate: %d bytes on %s: %w", n, g.dev.Info().Name, err)
	}
	g.bufs = append(g.bufs, b)
	var at []npu.Ptr
	for _, o := range offsets {
		at = append(at, npu.Ptr{Buf: b, Off: o})
	}
	return at, nil
}

// fill copies the weights to the device, one tensor at a time.
func (g *Generator) fill(w Weights, mem graph.Memory) (err error) {
	mover := graph.NewMover(g.dev, g.stream)
	defer func() { err = errors.Join(err, mover.Close()) }()
	for i, x := range g.step.prog.Weights() {
		shape, ok := w.Shape(x.Name)
		if !ok {
			return fmt.Errorf("generate: the weights lack %s", x.Name)
		}
		if !npu.Shape(shape).Equal(x.Desc.Shape) {
			return fmt.Errorf("generate: %s is %v in the weights, %v in the model\nhint: use the configuration that belongs to these weights", x.Name, shape,
				x.Desc.Shape)
		}
		v := make([]float32, x.Desc.Shape.Elems())
		if err := w.Read(x.Name, v); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
		if err := mover.In(context.Background(), mem.Weights[i], x.Desc, bytesOf(v)); err != nil {
			return fmt.Errorf("generate: %s: %w", x.Name, err)
		}
	}
	return nil
}

// WeightBytes is the number of bytes that one token must read: every weight that takes part in a product, in its stored form.
func (g *Generator) WeightBytes() int64 {
	n := g.config.Params()
	if !g.config.Tied {
		n -= int64(g.config.Vocab) * int64(g.config.Dim)
	}
	return n * int64(g.opt.Compute.Size())
}

// Info describes the device.
func (g *Generator) Info() npu.Info { return g.dev.Info() }

// Close releases everything. Close is idempotent.
func (g *Generator) Close() error {
	var errs []error
	for _, p := range []*program{g.prompt, g.step} {
		if p != nil {
			errs = append(errs, p.prog.Close())
		}
	}
	for _, b := range g.bufs {
		errs = append(errs, b.Free())
	}
	if g.stream != nil {
		errs = append(errs, g.stream.Close())
	}
	if g.dev != nil {
		errs = append(errs, g.dev.Close())
	}
	g.prompt, g.step, g.bufs, g.stream, g.dev = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

func bytesOf[T float32 | int32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
