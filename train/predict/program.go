package predict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
)

// program is the network compiled for a size of batches.
type program struct {
	prog *graph.Program
	in   []npu.Ptr // by field that is no target; nil where the network does not read it
	row  []int     // bytes of a row of each
	out  npu.Ptr
	host []float32 // logits
	copy bool      // host is a copy of them: the host cannot access device memory
}

const logitsOut = "logits"

// compile builds the network for a number of rows and prepares its kernels.
func (e *engine) compile(rows int) (*program, error) {
	b := graph.New(graph.ForEval())
	in := map[string]*graph.Node{}
	for _, f := range e.all {
		in[f.Name] = b.Input(f.Name, f.dtype, append([]int{rows}, f.Shape...)...)
	}
	logits := e.build(b, in)
	if err := b.Err(); err != nil {
		return nil, fmt.Errorf("predict: %s: %w", e.place, err)
	}
	if logits == nil {
		return nil, fmt.Errorf("predict: the model sets no Logits\nhint: set train.Outputs.Logits to the outputs by row, [N K]")
	}
	d := b.Desc(logits)
	if len(d.Shape) != 2 || d.Shape[0] != rows || d.DType != npu.F32 {
		return nil, fmt.Errorf("predict: the logits are %v, want f32[%d K]: one row of outputs for each of the %d rows of the batch", d, rows, rows)
	}
	b.Output(logitsOut, logits)
	prog, err := e.lower(b)
	if err != nil {
		return nil, fmt.Errorf("predict: %s: %w", e.place, err)
	}
	if len(e.progs) > 0 && !slices.Equal(prog.Plan().Folds, e.folds) {
		return nil, errors.Join(fmt.Errorf("predict: %s: the network of %d rows normalises otherwise than the largest batch\nhint: a model must not depend on "+
			"the number of rows", e.place, rows), prog.Close())
	}
	p := &program{prog: prog, copy: e.dev.Info().Separate}
	if e.outputs == 0 { // the first one, before anything runs
		e.outputs = d.Shape[1]
	}
	e.stats.mu.Lock()
	e.stats.Compiled++
	e.stats.mu.Unlock()
	if !p.copy {
		return p, nil
	}
	host, err := npu.AllocHost(e.dev, d.PlainBytes())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("predict: %w", err), prog.Close())
	}
	e.bufs = append(e.bufs, host)
	p.host = floats(host.Host()[:d.PlainBytes()])
	return p, nil
}

// lower plans the network and prepares its kernels.
func (e *engine) lower(b *graph.Builder) (*graph.Program, error) {
	g, err := b.Lower()
	if err != nil {
		return nil, err
	}
	o := graph.Options{Compute: e.compute, Constant: true, Fold: !e.noFold, Layouts: e.layouts}
	if err := e.conv.decide(g, e.dev, e.stream, o); err != nil {
		return nil, err
	}
	o.Algorithm = e.conv.choose
	return graph.CompileGraph(g, e.dev, o)
}

// bind gives a program its memory and computes what depends on the weights alone.
func (e *engine) bind(p *program) error {
	if err := p.prog.Bind(e.mem); err != nil {
		return err
	}
	read := false
	for _, f := range e.all {
		if f.Target {
			continue
		}
		at, _, ok := p.prog.Input(f.Name)
		p.in, p.row = append(p.in, at), append(p.row, f.bytes)
		read = read || ok
	}
	if !read {
		return errors.New("predict: the network reads none of its inputs")
	}
	at, d, ok := p.prog.Output(logitsOut)
	if !ok || d.DType != npu.F32 || d.Layout != npu.Plain {
		return fmt.Errorf("predict: the logits are %v, want f32", d)
	}
	p.out = at
	if !p.copy {
		mem := at.Buf.Host()[at.Off:]
		p.host = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), d.Shape.Elems())
	}
	if err := p.prog.Prepare(e.stream); err != nil {
		return err
	}
	return e.stream.Sync(context.Background())
}

// sized is the program for a size of batches, compiled when it is first needed.
func (e *engine) sized(rows int) (*program, error) {
	if p := e.progs[rows]; p != nil {
		return p, nil
	}
	p, err := e.compile(rows)
	if err != nil {
		return nil, err
	}
	if err := e.bind(p); err != nil { // the next batch tries again
		return nil, errors.Join(err, p.prog.Close())
	}
	e.progs[rows] = p
	return p, nil
}

// forward computes a batch. The result is valid until the next one.
func (e *engine) forward(batch []*slot, size int) ([]float32, error) {
	p, err := e.sized(size)
	if err != nil {
		return nil, err
	}
	for row, s := range batch {
		for i, at := range p.in {
			if at.IsNil() {
				continue
			}
			if err := e.stream.CopyIn(at.At(int64(row*p.row[i])), s.fields[i]); err != nil {
				return nil, e.drained(err)
			}
		}
	}
	if err := p.prog.Run(e.stream, false, nil); err != nil {
		return nil, e.drained(err)
	}
	if p.copy {
		if err := e.stream.CopyOut(bytesOf(p.host), p.out); err != nil {
			return nil, e.drained(err)
		}
	}
	if err := e.stream.Sync(context.Background()); err != nil {
		return nil, fmt.Errorf("predict: %w", err)
	}
	e.stats.add(size, len(batch))
	return p.host, nil
}

// drained waits until the device no longer reads the memory of slots that are about to be used again.
func (e *engine) drained(err error) error {
	return fmt.Errorf("predict: %w", errors.Join(err, e.stream.Sync(context.Background())))
}
