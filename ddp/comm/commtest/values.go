package commtest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
)

var dtypes = []npu.DType{npu.F32, npu.BF16, npu.F16, npu.F64, npu.I32, npu.I64, npu.U8, npu.I8}

var collectives = []comm.Kind{comm.AllReduce, comm.ReduceScatter, comm.AllGather, comm.Broadcast, comm.Reduce, comm.AllToAll}

// values compares every collective with its twin, bit by bit, over sizes, dtypes, reductions, roots and kinds of memory, twice. float32
// sees every combination, the others those that take another path.
func (tr Transport) values(t *testing.T) {
	sizes := []int64{1, 3, 64, 1000, 4097, 70001}
	if testing.Short() {
		sizes = []int64{1, 1000, 4097}
	}
	for _, w := range tr.Ranks {
		g := tr.group(t, w)
		try := func(kind comm.Kind, dt npu.DType, op comm.Op, n int64, own ownership) {
			tr.compare(t, g, comm.Call{Kind: kind, Op: op, DType: dt, Root: int(n) % w, Elems: n * int64(w)}, own)
		}
		for _, kind := range collectives {
			for _, n := range sizes {
				for _, own := range []ownership{allShared, allHeap, mixed} {
					try(kind, npu.F32, comm.Sum, n, own)
				}
			}
			for _, dt := range dtypes {
				for _, op := range ops(kind) {
					try(kind, dt, op, 37, allHeap)
					try(kind, dt, op, 3001, allShared)
				}
			}
		}
	}
}

// large is about sizes that go in pieces, up to 64 MiB.
func (tr Transport) large(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	g := tr.group(t, 2)
	for _, own := range []ownership{allShared, mixed} {
		for _, kind := range collectives {
			tr.compare(t, g, comm.Call{Kind: kind, DType: npu.F32, Elems: 1<<21 + 6}, own)
		}
	}
	tr.compare(t, g, comm.Call{Kind: comm.AllReduce, DType: npu.F32, Elems: 16 << 20}, allShared)
	tr.compare(t, g, comm.Call{Kind: comm.AllReduce, DType: npu.BF16, Elems: 1<<20 + 2}, allHeap)
}

type ownership int

const (
	allShared ownership = iota // memory from Alloc
	allHeap                    // memory of the caller's
	mixed                      // even ranks from Alloc
)

func (o ownership) String() string { return [...]string{"alloc", "heap", "mixed"}[o] }

func ops(k comm.Kind) []comm.Op {
	switch k {
	case comm.AllReduce, comm.ReduceScatter, comm.Reduce:
		return []comm.Op{comm.Sum, comm.Max, comm.Min}
	}
	return []comm.Op{comm.Sum}
}

// compare runs one call on all ranks, twice, and compares with the twin.
func (tr Transport) compare(t *testing.T, g []comm.Communicator, call comm.Call, own ownership) {
	t.Helper()
	w := len(g)
	inputs := make([][]byte, w)
	for r := range inputs {
		inputs[r] = pattern(call.DType, inElems(call, w), r)
	}
	run := func(outputs [][]byte) func(context.Context, comm.Communicator) error {
		return func(ctx context.Context, c comm.Communicator) error {
			out, err := tr.perform(ctx, c, call, inputs[c.Rank()], own)
			outputs[c.Rank()] = out
			return err
		}
	}
	if !tr.supports(call) {
		for r, err := range each(t, g, run(make([][]byte, w))) {
			if err == nil || !strings.HasPrefix(err.Error(), "comm: ") {
				t.Fatalf("%v, which the transport does not support, %d ranks: rank %d: error %v", call, w, r, err)
			}
		}
		return
	}
	wants := tr.twin(call, inputs)
	var before [][]byte
	for range 2 {
		outputs := make([][]byte, w)
		all(t, g, run(outputs))
		for r, got := range outputs {
			if why := tr.wrong(call, wants[r], got); why != "" {
				t.Fatalf("%v, %d ranks, %v memory: rank %d %s", call, w, own, r, why)
			}
			if call.Kind == comm.AllReduce && !bytes.Equal(got, outputs[0]) {
				t.Fatalf("%v, %v memory: ranks 0 and %d of %d differ at byte %d", call, own, r, w, differ(got, outputs[0]))
			}
			if before != nil && wants[r] != nil && !bytes.Equal(got, before[r]) {
				t.Fatalf("%v, %d ranks, %v memory: rank %d differs between two runs at byte %d", call, w, own, r, differ(got, before[r]))
			}
		}
		before = outputs
	}
}

// wrong says how a result differs from the twin's, or returns "". want is nil where the contract leaves the result open.
func (tr Transport) wrong(call comm.Call, want, got []byte) string {
	if want == nil || bytes.Equal(got, want) {
		return ""
	}
	if tr.Loose && call.DType.IsFloat() && reduces(call.Kind) && call.Op == comm.Sum {
		return looselyWrong(call.DType, want, got)
	}
	return fmt.Sprintf("differs from the twin at byte %d of %d", differ(got, want), len(want))
}

func reduces(k comm.Kind) bool {
	return k == comm.AllReduce || k == comm.ReduceScatter || k == comm.Reduce
}

// looselyWrong compares sums whose order is open. The bound is that of a handful of roundings of numbers a few times larger than the inputs, which
// pattern keeps within a few powers of two of each other.
func looselyWrong(t npu.DType, want, got []byte) string {
	if len(want) != len(got) {
		return fmt.Sprintf("has %d bytes, want %d", len(got), len(want))
	}
	a, b := numbers(t, want), numbers(t, got)
	largest := 0.0
	for _, v := range a {
		largest = max(largest, math.Abs(v))
	}
	bound := 8 * largest * map[npu.DType]float64{npu.F64: 0x1p-53, npu.F32: 0x1p-24, npu.F16: 0x1p-11, npu.BF16: 0x1p-8}[t]
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= bound) {
			return fmt.Sprintf("has %g at element %d, the twin %g: they may differ by %g", b[i], i, a[i], bound)
		}
	}
	return ""
}

// numbers decodes elements of a floating-point type.
func numbers(t npu.DType, b []byte) []float64 {
	m := comm.Host(b, t)
	switch t {
	case npu.F64:
		return slices.Clone(comm.View[float64](m))
	case npu.F32:
	default:
		m = comm.Host(widen(t, b), npu.F32)
	}
	out := make([]float64, m.Elems)
	for i, v := range comm.View[float32](m) {
		out[i] = float64(v)
	}
	return out
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// perform does the call with copies of its input and gives what is in out.
func (tr Transport) perform(ctx context.Context, c comm.Communicator, call comm.Call, input []byte, own ownership) ([]byte, error) {
	shared := own == allShared || own == mixed && c.Rank()%2 == 0
	in, free, err := tr.memory(c, call.DType, inElems(call, c.Size()), shared)
	if err != nil {
		return nil, err
	}
	defer free()
	if err := tr.put(c, in, input); err != nil {
		return nil, err
	}
	out := in
	if n := outElems(call, c.Size()); n > 0 {
		o, free, err := tr.memory(c, call.DType, n, shared)
		if err != nil {
			return nil, err
		}
		defer free()
		out = o
	}
	if err := comm.Wait(ctx)(comm.Do(ctx, c, call, out, in)); err != nil {
		return nil, err
	}
	return tr.get(c, out)
}

// inElems is the size of in on each rank, outElems of out if it is another memory.
func inElems(call comm.Call, w int) int64 {
	if call.Kind == comm.AllGather {
		return call.Elems / int64(w)
	}
	return call.Elems
}

func outElems(call comm.Call, w int) int64 {
	switch call.Kind {
	case comm.ReduceScatter:
		return call.Elems / int64(w)
	case comm.AllGather, comm.AllToAll:
		return call.Elems
	}
	return 0
}
