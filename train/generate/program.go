package generate

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
)

// program reads width tokens of each text at a time.
type program struct {
	prog                 *graph.Program
	width                int
	tokens, pos, last    []int32 // [texts width], [texts width], [texts]
	inTokens, inPos, end npu.Ptr
	out                  npu.Ptr
	host                 []float32 // logits [texts V]
	copied               bool      // host is a copy of them: the host cannot access device memory
	// All slices are page-locked, or memory of a device that the host can access.
}

func (g *Generator) compile(width int, layouts map[string]npu.Layout) (*program, error) {
	n := g.opt.Texts
	b := graph.New(graph.ForEval())
	in := llama.Step{Tokens: b.Input("tokens", npu.I32, n, width), Pos: b.Input("pos", npu.I32, n, width), Last: b.Input("last", npu.I32, n)}
	b.Output("logits", g.config.Decode(b, in, g.opt.Room))
	prog, err := graph.Compile(b, g.dev, graph.Options{Compute: g.opt.Compute, Constant: true, Layouts: layouts})
	if err != nil {
		return nil, err
	}
	p := &program{prog: prog, width: width}
	for _, s := range []struct {
		to *[]int32
		n  int
	}{{&p.tokens, n * width}, {&p.pos, n * width}, {&p.last, n}} {
		if *s.to, err = hostOf[int32](g, s.n); err != nil {
			return nil, errors.Join(err, prog.Close())
		}
	}
	if !g.dev.Info().Separate { // the host reads the logits where they are, see bind
		return p, nil
	}
	if p.host, err = hostOf[float32](g, n*g.config.Vocab); err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	p.copied = true
	return p, nil
}

// hostOf returns n elements of host memory that the device copies asynchronously.
func hostOf[T float32 | int32](g *Generator, n int) ([]T, error) {
	b, err := npu.AllocHost(g.dev, int64(4*n))
	if err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	g.bufs = append(g.bufs, b)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.Host()))), n), nil
}

func (p *program) bind(mem graph.Memory) error {
	if err := p.prog.Bind(mem); err != nil {
		return err
	}
	p.inTokens, _, _ = p.prog.Input("tokens")
	p.inPos, _, _ = p.prog.Input("pos")
	p.end, _, _ = p.prog.Input("last")
	at, d, ok := p.prog.Output("logits")
	if !ok || d.DType != npu.F32 {
		return fmt.Errorf("generate: the logits are %v, want f32", d)
	}
	p.out = at
	if !p.copied {
		mem := at.Buf.Host()[at.Off:]
		p.host = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), d.Shape.Elems())
	}
	return nil
}

// clear marks all texts as having no token.
func (p *program) clear() {
	for i := range p.pos {
		p.tokens[i], p.pos[i] = 0, -1
	}
	for i := range p.last {
		p.last[i] = int32(i * p.width)
	}
}

// put sets token j of a text, at a given position. The last one put is the newest.
func (p *program) put(text, j int, id int32, place int) {
	at := text*p.width + j
	p.tokens[at], p.pos[at], p.last[text] = id, int32(place), int32(at)
}

func (p *program) logits(text, vocab int) []float32 { return p.host[text*vocab:][:vocab] }

// forward enqueues a run of a program, whose logits the host can read after it.
func (g *Generator) forward(p *program) error {
	for _, in := range []struct {
		at npu.Ptr
		v  []int32
	}{{p.inTokens, p.tokens}, {p.inPos, p.pos}, {p.end, p.last}} {
		if in.at.IsNil() { // the program does not read it
			continue
		}
		if err := g.stream.CopyIn(in.at, bytesOf(in.v)); err != nil {
			return err
		}
	}
	if err := p.prog.Run(g.stream, false, nil); err != nil {
		return err
	}
	if p.copied {
		return g.stream.CopyOut(bytesOf(p.host), p.out)
	}
	return nil
}
