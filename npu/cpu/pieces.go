//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// A convolution that is widened is computed for a few pictures at a time, so that their float32 copies stay in the second-level cache: the copies of a whole
// batch would be written to memory and read again, with twice the traffic of a convolution in float32.

// pieceBytes is the memory of the float32 copies of a piece, for each thread; a variable for tests.
var pieceBytes int64 = 1 << 20

// images lists the arguments that have the batch as their first dimension. What is left is weights and their gradient, and biases.
func images(op npu.Op) []int {
	switch op.Kind {
	case npu.Conv2D, npu.Conv2DBwdData:
		return []int{0, len(op.In)}
	case npu.Conv2DBwdWeights:
		return []int{0, 1}
	}
	return nil
}

// pieces is the number of pictures that are computed at a time, 0 for what is no convolution of several. The gradients of weights of pieces are added, which
// must not cost more than is gained.
func (d *Device) pieces(op npu.Op) int {
	which := images(op)
	if which == nil || op.In[0].Shape[0] < 2 {
		return 0
	}
	n, each := op.In[0].Shape[0], int64(0)
	for _, i := range which {
		t, _ := arg(op, i)
		each += 4 * t.Shape.Elems() / int64(n)
	}
	if each == 0 {
		return n
	}
	count := (int64(n)*each + int64(d.threads)*pieceBytes - 1) / (int64(d.threads) * pieceBytes)
	count = min(count, int64((n+d.threads-1)/d.threads))
	if op.Kind == npu.Conv2DBwdWeights {
		count = min(count, 1+int64(n)*each/(16*op.Out[0].Shape.Elems()))
	}
	size := (n + int(count) - 1) / int(max(count, 1))
	return min(n, (size+d.threads-1)/d.threads*d.threads)
}

// withBatch is a convolution of n pictures.
func withBatch(op npu.Op, n int) npu.Op {
	op = op.Clone()
	for _, i := range images(op) {
		list, at := op.In, i
		if i >= len(op.In) {
			list, at = op.Out, i-len(op.In)
		}
		list[at].Shape = list[at].Shape.Clone()
		list[at].Shape[0] = n
	}
	if x := op.Attrs.Ints("x_shape"); len(x) == 4 {
		op.Attrs = op.Attrs.Clone()
		op.Attrs["x_shape"] = []int{n, x[1], x[2], x[3]}
	}
	return op
}

// widenInPieces builds a convolution of bf16 pictures by m in float32, a few pictures at a time. It is errNotMine if the op is no convolution, or small.
func (d *Device) widenInPieces(op npu.Op, m maker) (body, error) {
	size := d.pieces(op)
	if size == 0 || size >= op.In[0].Shape[0] || op.Kind == npu.Conv2DBwdWeights && len(op.Out) > 1 {
		return nil, errNotMine
	}
	p := &pieced{d: d, op: op, seq: &sequence{}, batch: op.In[0].Shape[0], image: map[int]bool{}}
	for _, i := range images(op) {
		p.image[i] = true
	}
	if err := p.prepare(size); err != nil {
		return nil, err
	}
	bodies := map[int]body{}
	for at := 0; at < p.batch; at += size {
		n := min(size, p.batch-at)
		if bodies[n] == nil {
			var err error
			if bodies[n], err = m.build(d, inF32(withBatch(op, n))); err != nil {
				return nil, fmt.Errorf("%w: %w", errNotMine, err)
			}
		}
		p.piece(bodies[n], at, n)
	}
	return p.seq, nil
}

// pieced builds the steps of a convolution in pieces.
type pieced struct {
	d     *Device
	op    npu.Op
	seq   *sequence
	batch int
	image map[int]bool  // arguments of which a piece has a part
	bytes []int64       // of each argument
	temp  map[int]place // float32 copies; the gradient of a piece
}

func (p *pieced) room(bytes int64) place {
	at := place{arg: -1, off: p.seq.temp}
	p.seq.temp += (bytes + 63) &^ 63
	return at
}

// prepare reserves memory for pieces of so many pictures, and converts weights.
func (p *pieced) prepare(size int) error {
	p.temp = map[int]place{}
	for i := range len(p.op.In) + len(p.op.Out) {
		t, in := arg(p.op, i)
		bytes, err := p.d.Bytes(t)
		if err != nil {
			return err
		}
		p.bytes = append(p.bytes, bytes)
		elems := bytes / int64(t.DType.Size())
		switch {
		case p.image[i] && t.DType != npu.BF16, !in && !p.image[i] && t.DType != npu.F32, elems%int64(p.batch) != 0 && p.image[i]:
			return errNotMine
		case p.image[i]:
			p.temp[i] = p.room(elems / int64(p.batch) * int64(size) * 4)
		case !in:
			p.temp[i] = p.room(bytes)
		case t.DType == npu.BF16:
			if wide, err := p.d.Bytes(wideDesc(t)); err != nil || wide != 2*bytes {
				return errNotMine
			}
			p.temp[i] = p.room(2 * bytes)
			p.seq.steps = append(p.seq.steps, p.d.convertStep(int(elems), npu.BF16, place{arg: i}, npu.F32, p.temp[i]))
		}
	}
	return nil
}

// piece adds the steps for pictures at…at+n-1.
func (p *pieced) piece(b body, at, n int) {
	run := step{body: b}
	var after []step
	for i := range len(p.op.In) + len(p.op.Out) {
		t, in := arg(p.op, i)
		each := p.bytes[i] / int64(p.batch)
		part := place{arg: i, off: each * int64(at)}
		elems := int(each / 2 * int64(n))
		temp, copied := p.temp[i]
		switch {
		case p.image[i] && in:
			p.seq.steps = append(p.seq.steps, p.d.convertStep(elems, npu.BF16, part, npu.F32, temp))
		case p.image[i]:
			after = append(after, p.d.convertStep(elems, npu.F32, temp, npu.BF16, part))
		case !in && at == 0:
			temp = place{arg: i}
		case !in:
			after = append(after, p.d.addStep(int(p.bytes[i]/int64(t.DType.Size())), place{arg: i}, temp))
		case !copied: // a bias
			temp = place{arg: i}
		}
		run.args = append(run.args, temp)
	}
	p.seq.steps = append(append(p.seq.steps, run), after...)
}

// addStep adds float32 elements at b to those at a.
func (d *Device) addStep(elems int, a, b place) step {
	t := npu.D(npu.F32, elems)
	op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add"}, In: []npu.Desc{t, t}, Out: []npu.Desc{t}}
	call, ok := kern.Prepare(op)
	if !ok {
		panic("cpu: no kernel for " + op.String())
	}
	call.ForThreads(d.threads)
	return step{body: kernBody{call}, args: []place{a, b, a}}
}
