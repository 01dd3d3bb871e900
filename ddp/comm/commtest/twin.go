package commtest

import (
	"bytes"
	"math"
	"sort"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/reduce"
	"github.com/gotrain/gotrain/npu"
)

// twin is what each rank must hold after the call, computed in one place; nil where the contract leaves it open.
func (tr Transport) twin(call comm.Call, inputs [][]byte) [][]byte {
	w := len(inputs)
	out := make([][]byte, w)
	switch call.Kind {
	case comm.AllReduce, comm.Reduce, comm.ReduceScatter:
		sum := tr.fold(call, inputs)
		for r := range out {
			switch {
			case call.Kind == comm.ReduceScatter:
				out[r] = part(sum, w, r)
			case call.Kind == comm.AllReduce || r == call.Root:
				out[r] = sum
			}
		}
	case comm.Broadcast:
		for r := range out {
			out[r] = inputs[call.Root]
		}
	case comm.AllGather:
		for r := range out {
			out[r] = bytes.Join(inputs, nil)
		}
	case comm.AllToAll:
		for r := range out {
			for _, in := range inputs {
				out[r] = append(out[r], part(in, w, r)...)
			}
		}
	}
	return out
}

func part(b []byte, w, r int) []byte {
	n := len(b) / w
	return b[r*n : (r+1)*n]
}

// fold combines in the order that the transport promises: of ranks, unless its options say something else.
func (tr Transport) fold(call comm.Call, inputs [][]byte) []byte {
	if tr.Ring {
		return ringFold(call, inputs)
	}
	if tr.Nodes == nil {
		return fold(call, inputs)
	}
	var nodes [][][]byte
	for r, n := range tr.Nodes(len(inputs)) {
		for len(nodes) <= n {
			nodes = append(nodes, nil)
		}
		nodes[n] = append(nodes[n], inputs[r])
	}
	var sums [][]byte
	for _, inputs := range nodes {
		sums = append(sums, fold(call, inputs))
	}
	return fold(call, sums)
}

// fold combines in rank order. 16-bit floats keep a float32 sum until the end, so they are widened first: Into would round at each step.
func fold(call comm.Call, inputs [][]byte) []byte {
	if call.DType == npu.BF16 || call.DType == npu.F16 {
		sum := widen(call.DType, inputs[0])
		for _, in := range inputs[1:] {
			reduce.Into(call.Op, npu.F32, sum, widen(call.DType, in))
		}
		return narrow(call.DType, sum)
	}
	sum := bytes.Clone(inputs[0])
	for _, in := range inputs[1:] {
		reduce.Into(call.Op, call.DType, sum, in)
	}
	return sum
}

func widen(t npu.DType, b []byte) []byte {
	out := make([]float32, len(b)/2)
	for i := range out {
		v := uint32(b[2*i]) | uint32(b[2*i+1])<<8
		if t == npu.BF16 {
			out[i] = math.Float32frombits(v << 16)
			continue
		}
		// Only the normal numbers and zeros that pattern makes.
		f := math.Ldexp(float64(v&1023|1024), int(v>>10&31)-25)
		if v&0x7fff == 0 {
			f = 0
		}
		if v&0x8000 != 0 {
			f = -f
		}
		out[i] = float32(f)
	}
	return comm.HostOf(out).Host()
}

// narrow rounds to nearest even by asking which 16-bit neighbour is closer, in float64: slow and plain.
func narrow(t npu.DType, wide []byte) []byte {
	m := comm.Host(wide, npu.F32)
	out := make([]byte, 0, len(wide)/2)
	for _, f := range comm.View[float32](m) {
		v := nearest(t, f)
		out = append(out, byte(v), byte(v>>8))
	}
	return out
}

func nearest(t npu.DType, f float32) uint16 {
	sign := uint16(math.Float32bits(f) >> 16 & 0x8000)
	a := math.Abs(float64(f))
	table := finite(t)
	hi := sort.SearchFloat64s(table, a) // the first that is not below a
	if hi == 0 || hi == len(table) || table[hi] == a {
		return sign | uint16(min(hi, len(table)-1))
	}
	lo := hi - 1
	below, above := a-table[lo], table[hi]-a
	if below < above || below == above && lo&1 == 0 {
		return sign | uint16(lo)
	}
	return sign | uint16(hi)
}

// finite are the values of all non-negative finite bit patterns, in order.
func finite(t npu.DType) []float64 {
	if t == npu.BF16 {
		return finiteBF16()
	}
	return finiteF16()
}

var (
	finiteBF16 = sync.OnceValue(func() []float64 { return values16(npu.BF16, 0x7f80) })
	finiteF16  = sync.OnceValue(func() []float64 { return values16(npu.F16, 0x7c00) })
)

func values16(t npu.DType, n int) []float64 {
	all := make([]float64, n)
	for v := range all {
		all[v] = float64(comm.View[float32](comm.Host(widen(t, []byte{byte(v), byte(v >> 8)}), npu.F32))[0])
		if t == npu.F16 && v < 1024 {
			all[v] = math.Ldexp(float64(v), -24)
		}
	}
	return all
}

// pattern is n elements that differ between ranks and places, and whose sums round.
func pattern(t npu.DType, n int64, rank int) []byte {
	b := make([]byte, n*int64(t.Size()))
	m := comm.Host(b, t)
	x := uint64(rank+1) * 0x9E3779B97F4A7C15
	next := func() uint64 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x
	}
	switch t {
	case npu.F32:
		v := comm.View[float32](m)
		for i := range v {
			v[i] = float32(int64(next())>>40) / 1000
		}
	case npu.F64:
		v := comm.View[float64](m)
		for i := range v {
			v[i] = float64(int64(next())) / 1000
		}
	case npu.BF16, npu.F16:
		for i := range n {
			v := uint16(next()>>40)&0x80ff | 0x3c00 // about ±1 to ±2 (f16), ±0.01 to ±0.03 (bf16)
			b[2*i], b[2*i+1] = byte(v), byte(v>>8)
		}
	default:
		for i := range b {
			b[i] = byte(next() >> 32)
		}
	}
	return b
}
