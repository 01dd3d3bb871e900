package comm

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// Op is how a reduction combines elements.
type Op uint8

// The reductions. There is no Mean: callers divide by their own count.
const (
	Sum Op = iota
	Max
	Min
)

var ops = [...]string{"sum", "max", "min"}

func (o Op) String() string {
	if int(o) < len(ops) {
		return ops[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o)) // of another rank's call, which may be anything
}

// Mem is a span of memory that takes part in a collective: Elems elements of type DType at Ptr.
type Mem struct {
	Ptr   npu.Ptr
	Elems int64
	DType npu.DType
}

// Bytes returns the size of the span.
func (m Mem) Bytes() int64 { return m.Elems * int64(m.DType.Size()) }

// Host returns the span as host memory, or nil if the host cannot access it.
func (m Mem) Host() []byte {
	if m.Ptr.Buf == nil {
		return nil
	}
	h := m.Ptr.Buf.Host()
	if h == nil {
		return nil
	}
	return h[m.Ptr.Off : m.Ptr.Off+m.Bytes()]
}

// Slice returns the sub-span of n elements starting at element from.
func (m Mem) Slice(from, n int64) Mem {
	m.Ptr = m.Ptr.At(from * int64(m.DType.Size()))
	m.Elems = n
	return m
}

// Communicator joins the ranks of one group. Collectives must be called by all ranks in the same order with matching
// arguments; a mismatch (kind, size, dtype, reduction, root) is detected and reported on every rank as *MismatchError.
//
// A collective returns a Handle immediately; handles complete in the order of issue. Several may be in flight. Memory of an unfinished collective
// must not be touched. After an error other than a MismatchError the communicator is broken: every later call fails at once with that
// first error. Methods are safe for concurrent use, but the caller is responsible for the order of issue.
//
// The result of a reduction is bit-equal on all ranks and from run to run.
type Communicator interface {
	Rank() int
	Size() int
	// Transport names the implementation: "shm", "tcp", "mpi", "hccl", "self".
	Transport() string

	// Alloc returns memory that the transport reduces without an extra copy. Ranks must allocate in the same order and sizes. Memory that Close
	// of the communicator makes unusable has a method Keep(), which lets it be used until the process ends.
	Alloc(bytes int64) (npu.Buffer, error)

	AllReduce(ctx context.Context, m Mem, op Op) (Handle, error)
	// ReduceScatter: in holds Size() equal parts; part Rank() of the reduction goes to out (out may be that part of in).
	ReduceScatter(ctx context.Context, out, in Mem, op Op) (Handle, error)
	// AllGather: in of every rank, in rank order, to out (in may be part Rank() of out).
	AllGather(ctx context.Context, out, in Mem) (Handle, error)
	Broadcast(ctx context.Context, m Mem, root int) (Handle, error)
	// Reduce leaves the result in m of root; m of the others is unspecified afterwards.
	Reduce(ctx context.Context, m Mem, op Op, root int) (Handle, error)
	// AllToAll: part j of in goes to part Rank() of out on rank j. in and out must not overlap.
	AllToAll(ctx context.Context, out, in Mem) (Handle, error)
	// Send and Recv match in order between a pair of ranks, apart from the collectives' order.
	Send(ctx context.Context, m Mem, to int) (Handle, error)
	Recv(ctx context.Context, m Mem, from int) (Handle, error)
	Barrier(ctx context.Context) (Handle, error)

	// Work reports that this rank begins long work for which the others may have to wait; what describes it briefly, for messages. See Note [long work].
	Work(what string) Work

	// Stats returns the counters so far.
	Stats() Stats
	// Abort breaks the communicator on every rank with the reason; peers' pending calls end with a *PeerError that carries it.
	Abort(reason error)
	// Close leaves the group cleanly, frees memory from Alloc, and removes names from the system. Idempotent.
	Close() error
}

// Handle is a collective in progress. The context of the call sets its deadline: if it passes before completion, Wait
// returns a *TimeoutError that names the ranks that did not arrive. Patient makes a context in which a rank at long work may take longer than a silent
// rank.
type Handle interface {
	// Wait blocks until completion or until ctx (this one or the call's) ends. Idempotent.
	Wait(ctx context.Context) error
	// Done is closed on completion, successful or not. From then on the transport does not touch the memory, unless the error of Wait is ErrInUse.
	Done() <-chan struct{}
	// Took is the time from the moment that all ranks had arrived to completion, and the time waited for the last rank before; valid after Wait. apart is
	// false if the transport cannot tell one from the other, because this rank does not hear from every other one (a ring): then transfer is all the time
	// since the call was issued, and waited is 0.
	Took() (transfer, waited time.Duration, apart bool)
}

// Stats are sums since the communicator was made.
type Stats struct {
	Calls    int64
	Bytes    int64 // payload handed in
	Wire     int64 // bytes this rank wrote for others to read
	Transfer time.Duration
	Waited   time.Duration
	Mingled  int64 // calls of which the transport could not tell waiting and transfer apart: their whole time is in Transfer
}

// Add counts a finished call, as its handle's Took describes it.
func (s *Stats) Add(bytes, wire int64, transfer, waited time.Duration, apart bool) {
	s.Calls++
	s.Bytes += bytes
	s.Wire += wire
	s.Transfer += transfer
	s.Waited += waited
	if !apart {
		s.Mingled++
	}
}

// PeerError reports that another rank died or gave up.
type PeerError struct {
	Rank   int // the peer
	Call   string
	Reason string
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("comm: %s: rank %d is gone: %s", e.Call, e.Rank, e.Reason)
}

// Blames returns the peer, which caused the failure.
func (e *PeerError) Blames() []int { return []int{e.Rank} }

// MismatchError reports that ranks called different collectives.
type MismatchError struct {
	Rank, Peer int
	Mine, Its  string // such as "allreduce #12 f32[1024] sum"
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf(
		"comm: ranks disagree: rank %d called %s, rank %d called %s\nhint: run the same program with the same recipe on all ranks",
		e.Rank,
		e.Mine,
		e.Peer,
		e.Its,
	)
}
