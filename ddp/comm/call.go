package comm

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// ErrClosed is the error of calls on a closed communicator.
var ErrClosed = errors.New("comm: communicator is closed")

// Kind identifies a collective.
type Kind uint8

// The collectives.
const (
	AllReduce Kind = 1 + iota
	ReduceScatter
	AllGather
	Broadcast
	Reduce
	AllToAll
	Send
	Recv
	Barrier
)

var kinds = [...]string{"none", "allreduce", "reducescatter", "allgather", "broadcast", "reduce", "alltoall", "send", "recv", "barrier"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Call describes one collective as a rank called it; ranks compare it with each other. Elems counts the larger side: m of
// AllReduce, Broadcast, Reduce, Send and Recv; in of ReduceScatter and AllToAll; out of AllGather.
type Call struct {
	Kind  Kind
	Op    Op // AllReduce, ReduceScatter, Reduce
	DType npu.DType
	Root  int // Broadcast, Reduce; the peer of Send and Recv
	Elems int64
}

// Key packs everything except Elems into one word; calls match between ranks iff Key and Elems are equal.
func (c Call) Key() uint64 {
	return uint64(c.Kind) | uint64(c.Op)<<8 | uint64(c.DType)<<16 | uint64(uint32(c.Root))<<32
}

// CallOf is the inverse of Key.
func CallOf(key uint64, elems int64) Call {
	return Call{Kind: Kind(key), Op: Op(key >> 8), DType: npu.DType(key >> 16), Root: int(uint32(key >> 32)), Elems: elems}
}

// String formats the call like "allreduce f32[1024] sum" or "broadcast i64[3] root 0".
func (c Call) String() string {
	if c.Kind == Barrier {
		return c.Kind.String()
	}
	s := fmt.Sprintf("%v %v[%d]", c.Kind, c.DType, c.Elems)
	switch c.Kind {
	case AllReduce, ReduceScatter:
		s += " " + c.Op.String()
	case Reduce:
		s += fmt.Sprintf(" %v root %d", c.Op, c.Root)
	case Broadcast:
		s += fmt.Sprintf(" root %d", c.Root)
	case Send:
		s += fmt.Sprintf(" to %d", c.Root)
	case Recv:
		s += fmt.Sprintf(" from %d", c.Root)
	}
	return s
}

// Number is String with the number of the call on this communicator: "allreduce #12 f32[1024] sum".
func (c Call) Number(n int64) string {
	s, k := c.String(), c.Kind.String()
	return fmt.Sprintf("%s #%d%s", k, n, s[len(k):])
}

// Check validates the arguments of a call on a group of size ranks, as far as one rank can. Its
// error begins with "comm: " and names the collective.
func (c Call) Check(rank, size int, out, in Mem) error {
	fail := func(format string, a ...any) error {
		return fmt.Errorf("comm: %v on rank %d: %s", c, rank, fmt.Sprintf(format, a...))
	}
	if c.Kind == Barrier {
		return nil
	}
	if c.DType.Size() == 0 {
		return fail("dtype %v cannot be exchanged", c.DType)
	}
	if why := wrongMem(&in, c.DType); why != "" {
		return fail("in: %s", why)
	}
	if why := wrongMem(&out, c.DType); why != "" {
		return fail("out: %s", why)
	}
	w := int64(size)
	switch c.Kind {
	case AllReduce, ReduceScatter, Reduce:
		if c.Op > Min {
			return fail("unknown reduction %d", c.Op)
		}
	}
	switch c.Kind {
	case Broadcast, Reduce, Send, Recv:
		if c.Root < 0 || c.Root >= size {
			return fail("no rank %d in a group of %d", c.Root, size)
		}
		if (c.Kind == Send || c.Kind == Recv) && c.Root == rank {
			return fail("a rank cannot exchange with itself")
		}
	case ReduceScatter:
		if out.Elems*w != in.Elems {
			return fail("out has %d elements, in has %d: want in = %d × out", out.Elems, in.Elems, size)
		}
	case AllGather:
		if in.Elems*w != out.Elems {
			return fail("in has %d elements, out has %d: want out = %d × in", in.Elems, out.Elems, size)
		}
	case AllToAll:
		if in.Elems != out.Elems || in.Elems%w != 0 {
			return fail("in has %d elements, out has %d: want equal counts that %d divides", in.Elems, out.Elems, size)
		}
	}
	return nil
}

// wrongMem describes what is wrong with a span, or returns "".
func wrongMem(m *Mem, t npu.DType) string {
	switch {
	case m.Elems == 0:
		return ""
	case m.Elems < 0:
		return "negative count of elements"
	case m.Ptr.Buf == nil:
		return "memory is nil"
	case m.DType != t:
		return fmt.Sprintf("elements are %v, those of the other side %v", m.DType, t)
	}
	if have := m.Ptr.Buf.Bytes(); m.Ptr.Off < 0 || m.Ptr.Off+m.Bytes() > have {
		return fmt.Sprintf("bytes %d to %d reach outside a buffer of %d bytes", m.Ptr.Off, m.Ptr.Off+m.Bytes(), have)
	}
	return ""
}
