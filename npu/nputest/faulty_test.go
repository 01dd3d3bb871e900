package nputest_test

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
)

// faulty is the device ref with memory that the host cannot reach, and something that goes wrong after each launch.
type faulty struct {
	npu.Device
	fault  func(op npu.Op, args [][]byte) // args: the whole memory from each argument on; nil where unused
	lacks  string
	opaque bool // the index of maxpool is no index
}

type blindBuffer struct{ b npu.Buffer }

func (b blindBuffer) Bytes() int64 { return b.b.Bytes() }
func (b blindBuffer) Host() []byte { return nil }
func (b blindBuffer) Free() error  { return b.b.Free() }

func inner(p npu.Ptr) npu.Ptr {
	if b, ok := p.Buf.(blindBuffer); ok {
		p.Buf = b.b
	}
	return p
}

func (d *faulty) Alloc(n int64) (npu.Buffer, error) {
	b, err := d.Device.Alloc(n)
	return blindBuffer{b}, err
}

func (d *faulty) Has(kind string, a npu.Attrs) bool { return kind != d.lacks && d.Device.Has(kind, a) }

// plusSeven is the layout of an index plus 7.
const plusSeven npu.Layout = "plus seven"

func (d *faulty) Bytes(x npu.Desc) (int64, error) { return d.Device.Bytes(x.With(npu.Plain)) }

func (d *faulty) Choose(op npu.Op) (npu.Op, error) {
	op, err := d.Device.Choose(op)
	if d.opaque && err == nil && op.Kind == npu.MaxPool && len(op.Out) > 1 {
		op.Out[1].Layout = plusSeven
	}
	if d.opaque && err == nil && op.Kind == npu.MaxPoolBwd {
		op.In[1].Layout = plusSeven
	}
	return op, err
}

func (d *faulty) Compile(op npu.Op) (npu.Kernel, error) {
	plain := op.Clone()
	for i := range plain.In {
		plain.In[i].Layout = npu.Plain
	}
	for i := range plain.Out {
		plain.Out[i].Layout = npu.Plain
	}
	k, err := d.Device.Compile(plain)
	return faultyKernel{k, d}, err
}

func (d *faulty) NewStream(name string) (npu.Stream, error) {
	s, err := d.Device.NewStream(name)
	return faultyStream{s, d}, err
}

type faultyKernel struct {
	npu.Kernel
	d *faulty
}

func (k faultyKernel) Workspace() int64 { return 8 }

func (k faultyKernel) Bind(args []npu.Ptr, ws npu.Ptr) (npu.Launch, error) {
	in := make([]npu.Ptr, len(args))
	l := faultyLaunch{op: k.Op(), args: make([][]byte, len(args)+1)}
	for i, p := range append(args[:len(args):len(args)], ws) {
		if !p.IsNil() {
			l.args[i] = inner(p).Buf.Host()[p.Off:]
		}
		if i < len(args) {
			in[i] = inner(p)
		}
	}
	var err error
	l.Launch, err = k.Kernel.Bind(in, npu.Ptr{})
	return l, err
}

type faultyLaunch struct {
	npu.Launch
	op   npu.Op
	args [][]byte
}

type faultyStream struct {
	npu.Stream
	d *faulty
}

func (s faultyStream) Run(batch []npu.Launch) error {
	for _, l := range batch {
		l := l.(faultyLaunch)
		steps := []func() error{
			func() error { return s.Do(func() error { s.d.index(l, npu.MaxPoolBwd, 1, -7); return nil }) },
			func() error { return s.Stream.Run([]npu.Launch{l.Launch}) },
			func() error {
				return s.Do(func() error {
					s.d.index(l, npu.MaxPoolBwd, 1, 7)
					s.d.index(l, npu.MaxPool, 2, 7)
					if s.d.fault != nil {
						s.d.fault(l.op, l.args)
					}
					return nil
				})
			},
		}
		for _, f := range steps {
			if err := f(); err != nil {
				return err
			}
		}
	}
	return nil
}

// index adds to the index of a launch of the kind, if there is one.
func (d *faulty) index(l faultyLaunch, kind string, arg int, by int32) {
	if !d.opaque || l.op.Kind != kind || arg >= len(l.args)-1 || l.args[arg] == nil {
		return
	}
	y := l.op.In[0]
	if kind == npu.MaxPool {
		y = l.op.Out[0]
	}
	for i := range int(y.Shape.Elems()) {
		shift(l.args[arg], i, by)
	}
}

func shift(b []byte, i int, by int32) {
	binary.LittleEndian.PutUint32(b[4*i:], binary.LittleEndian.Uint32(b[4*i:])+uint32(by))
}

func (s faultyStream) CopyIn(dst npu.Ptr, src []byte) error { return s.Stream.CopyIn(inner(dst), src) }
func (s faultyStream) CopyOut(dst []byte, src npu.Ptr) error {
	return s.Stream.CopyOut(dst, inner(src))
}

// scaleFirst multiplies the first float32 of output 0 of a kind.
func scaleFirst(kind string, k float32) func(npu.Op, [][]byte) {
	return func(op npu.Op, args [][]byte) {
		if b := args[len(op.In)]; op.Kind == kind && op.Out[0].DType == npu.F32 {
			binary.LittleEndian.PutUint32(b, math.Float32bits(k*math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	}
}

// Each fault is found, with words that name it; and a device without faults passes although the host cannot reach its memory.
func TestFaultsAreFound(t *testing.T) {
	calls := 0
	for name, c := range map[string]struct {
		kind  string
		d     faulty
		want  string // "" passes
		skips bool
	}{
		"none":            {kind: npu.MatMul},
		"a wrong element": {kind: npu.MatMul, d: faulty{fault: scaleFirst(npu.MatMul, 1.001)}, want: "output 0: element 0 is"},
		"one unit off":    {kind: npu.Transpose, d: faulty{fault: scaleFirst(npu.Transpose, 1+1.0/(1<<23))}, want: "± 0"},
		"an element that is not written": {kind: npu.Softmax, d: faulty{fault: func(op npu.Op, args [][]byte) {
			if op.Kind == npu.Softmax {
				copy(args[1], "\xff\xff\xff\xff")
			}
		}}, want: "element 0 is NaN"},
		"one more element is written": {kind: npu.Softmax, d: faulty{fault: func(op npu.Op, args [][]byte) {
			args[1][(op.Out[0].PlainBytes()+63)/64*64] = 0
		}}, want: "bytes behind output 0 was written to"},
		"an input is written to": {kind: npu.Softmax, d: faulty{fault: func(op npu.Op, args [][]byte) { args[0][0] ^= 1 }}, want: "input 0 was written to"},
		"too large a workspace":  {kind: npu.Softmax, d: faulty{fault: func(op npu.Op, args [][]byte) { args[2][64] ^= 1 }}, want: "behind the workspace was written to"},
		"other bits": {kind: npu.SwiGLU, d: faulty{fault: func(op npu.Op, args [][]byte) {
			if calls++; op.Kind == npu.SwiGLU && calls%2 == 0 {
				args[len(op.In)][0] ^= 1
			}
		}}, want: "other bits in a second run"},
		"a kind is missing": {kind: npu.Rope, d: faulty{lacks: npu.Rope}, skips: true},
		"an opaque index":   {kind: npu.MaxPoolBwd, d: faulty{opaque: true}},
		"an opaque index that is wrong": {kind: npu.MaxPoolBwd, d: faulty{opaque: true, fault: func(op npu.Op, args [][]byte) {
			if op.Kind == npu.MaxPool {
				shift(args[2], 0, 1)
			}
		}}, want: "maxpool_bwd"},
	} {
		t.Run(name, func(t *testing.T) {
			c.d.Device = open(t)
			results, err := nputest.Check(context.Background(), &c.d, nputest.Cases(c.kind, npu.F32), nputest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, r := range results {
				switch {
				case r.Status == nputest.Failed && c.want == "":
					t.Errorf("%v", r)
				case r.Status == nputest.Failed:
					found = found || strings.Contains(r.String(), c.want)
				case (r.Status == nputest.Skipped) != c.skips:
					t.Errorf("%v", r)
				}
			}
			if found != (c.want != "") {
				t.Errorf("no case fails with %q; the first result is %v", c.want, results[0])
			}
			if l := nputest.Lacking(&c.d); (len(l) == 1 && l[0] == npu.Rope) != c.skips {
				t.Errorf("lacking %v", l)
			}
		})
	}
}
