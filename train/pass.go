package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// pass is a compiled network with its inputs and outputs: one for training, one for evaluation.
type pass struct {
	net    *network
	prog   *graph.Program
	rows   int
	in     []npu.Ptr       // by field of the source; nil if the network does not read it
	scale  npu.Ptr         // the loss scale, nil if unused
	seed   npu.Ptr         // the dropout seed, nil if unused
	out    []outPtr        // loss, count (if counted), metrics, weight (if weighted)
	host   []byte          // room for one copy of the outputs per micro-batch; page-locked
	stride int             // bytes of one copy
	mine   sums            // of this rank
	bounds [][]graph.Bound // by field: its allowed values
	ready  npu.Event       // outputs have reached the host
	*results
}

// outPtr is an output, f32, and where its copy is on the host.
type outPtr struct {
	at    npu.Ptr
	place int // bytes from the start of the micro-batch, a multiple of 8
	bytes int
}

// sums are the outputs of one or more micro-batches, in float64.
type sums struct {
	loss, count float64
	metrics     []float64 // by network.sums, tensors in row-major order
}

// reset starts from zero.
func (s *sums) reset() {
	s.loss, s.count = 0, 0
	clear(s.metrics)
}

// finite reports whether every sum is finite.
func (s *sums) finite() bool {
	return finite(s.loss) && finite(s.count) && !slices.ContainsFunc(s.metrics, func(v float64) bool { return !finite(v) })
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func newPass(net *network, prog *graph.Program, rows int) *pass {
	return &pass{net: net, prog: prog, rows: rows, mine: sums{metrics: make([]float64, net.width())}, results: newResults(net)}
}

// wire looks up the memory of inputs and outputs, once the program is bound.
func (p *pass) wire(dev npu.Device, locked *pinned, fields []data.Field, micro int) (err error) {
	read := false
	for _, f := range fields {
		at, _, ok := p.prog.Input(f.Name)
		p.in = append(p.in, at)
		read = read || ok
	}
	if !read {
		return fmt.Errorf("train: the model reads none of the fields of the data source\nhint: read them from Inputs by name: %s", fieldList(fields))
	}
	p.findBounds(fields)
	p.scale, _, _ = p.prog.Input(graph.LossScaleInput)
	p.seed, _, _ = p.prog.Input(graph.SeedInput)
	names := []string{lossOut}
	if p.net.counted {
		names = append(names, countOut)
	}
	scalars := len(names)
	for i, n := range append(names, p.net.sums()...) {
		at, d, ok := p.prog.Output(n)
		if scalar := i < scalars || n == weightOut; !ok || scalar && len(d.Shape) != 0 || d.DType != npu.F32 || d.Layout != npu.Plain {
			return fmt.Errorf("train: output %q is %v, want a f32 scalar\nhint: reduce it with Builder.Sum", n, d)
		}
		p.out = append(p.out, outPtr{at, p.stride, int(d.PlainBytes())})
		p.stride += (int(d.PlainBytes()) + 7) &^ 7
	}
	if p.host, err = locked.alloc(int64(micro * p.stride)); err != nil {
		return err
	}
	p.ready, err = dev.NewEvent()
	return err
}

// copyIn enqueues copies of the fields of a batch. The batch may be released once they have run.
func (p *pass) copyIn(s npu.Stream, b *data.Batch) error {
	for i, at := range p.in {
		if at.IsNil() {
			continue
		}
		if err := s.CopyIn(at, b.Fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// copyOut enqueues the outputs of micro-batch m to the host.
func (p *pass) copyOut(s npu.Stream, m int) error {
	for i, o := range p.out {
		if err := s.CopyOut(p.copied(m, i), o.at); err != nil {
			return err
		}
	}
	return nil
}

// copied is output i of micro-batch m on the host.
func (p *pass) copied(m, i int) []byte {
	o := p.out[i]
	return p.host[m*p.stride+o.place:][:o.bytes]
}

// value is a scalar among the outputs; output 0 is the loss.
func (p *pass) value(m, i int) float64 { return float64(data.F32(p.copied(m, i))[0]) }

// add adds the outputs of micro-batch m, of which valid rows count.
func (p *pass) add(to *sums, m, valid int) {
	to.loss += p.value(m, 0)
	next := 1
	if p.net.counted {
		to.count += p.value(m, 1)
		next = 2
	} else {
		to.count += float64(valid)
	}
	at := 0
	for i := next; i < len(p.out); i++ {
		for _, v := range data.F32(p.copied(m, i)) {
			to.metrics[at] += float64(v)
			at++
		}
	}
}

// whole checks that a batch is full, for a model that does not count its own items.
func (p *pass) whole(b *data.Batch) error {
	if b.Valid == p.rows || p.net.counted {
		return nil
	}
	return fmt.Errorf("train: a batch has %d of %d rows, but the model does not say how many items its loss sums over\n"+
		"hint: set Outputs.Count, or choose a batch size that divides the number of samples", b.Valid, p.rows)
}

func (p *pass) close() error {
	var err error
	if p.ready != nil {
		err = p.ready.Close()
	}
	return errors.Join(err, p.prog.Close())
}
