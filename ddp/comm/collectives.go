package comm

import (
	"context"
	"fmt"
)

// Issue starts the collective that call describes, or refuses it. Where a collective has one span of memory, out and in are that span.
type Issue func(ctx context.Context, call Call, out, in Mem) (Handle, error)

// Collectives has the nine methods of a Communicator that start a collective. A transport embeds it and sets Issue, the one function that does them all:
//
//	type Comm struct {
//		comm.Collectives
//		…
//	}
//	c := &Comm{…}
//	c.Issue = c.issue
//
// Do is the way back, from a Call to the method.
type Collectives struct{ Issue Issue }

// AllReduce combines m of all ranks and leaves the result in m of each.
func (c *Collectives) AllReduce(ctx context.Context, m Mem, op Op) (Handle, error) {
	return c.Issue(ctx, Call{Kind: AllReduce, Op: op, DType: m.DType, Elems: m.Elems}, m, m)
}

// ReduceScatter combines in of all ranks and leaves part Rank of the result in out.
func (c *Collectives) ReduceScatter(ctx context.Context, out, in Mem, op Op) (Handle, error) {
	return c.Issue(ctx, Call{Kind: ReduceScatter, Op: op, DType: in.DType, Elems: in.Elems}, out, in)
}

// AllGather copies in of all ranks to out of each, in rank order.
func (c *Collectives) AllGather(ctx context.Context, out, in Mem) (Handle, error) {
	return c.Issue(ctx, Call{Kind: AllGather, DType: out.DType, Elems: out.Elems}, out, in)
}

// Broadcast copies m of root to m of all.
func (c *Collectives) Broadcast(ctx context.Context, m Mem, root int) (Handle, error) {
	return c.Issue(ctx, Call{Kind: Broadcast, DType: m.DType, Root: root, Elems: m.Elems}, m, m)
}

// Reduce combines m of all ranks into m of root.
func (c *Collectives) Reduce(ctx context.Context, m Mem, op Op, root int) (Handle, error) {
	return c.Issue(ctx, Call{Kind: Reduce, Op: op, DType: m.DType, Root: root, Elems: m.Elems}, m, m)
}

// AllToAll copies part j of in to part Rank of out on rank j.
func (c *Collectives) AllToAll(ctx context.Context, out, in Mem) (Handle, error) {
	return c.Issue(ctx, Call{Kind: AllToAll, DType: in.DType, Elems: in.Elems}, out, in)
}

// Send sends m to a rank that calls Recv. It completes when the peer has the data.
func (c *Collectives) Send(ctx context.Context, m Mem, to int) (Handle, error) {
	return c.Issue(ctx, Call{Kind: Send, DType: m.DType, Root: to, Elems: m.Elems}, m, m)
}

// Recv receives m from a rank that calls Send.
func (c *Collectives) Recv(ctx context.Context, m Mem, from int) (Handle, error) {
	return c.Issue(ctx, Call{Kind: Recv, DType: m.DType, Root: from, Elems: m.Elems}, m, m)
}

// Barrier completes when all ranks called it.
func (c *Collectives) Barrier(ctx context.Context) (Handle, error) {
	return c.Issue(ctx, Call{Kind: Barrier}, Mem{}, Mem{})
}

// Do calls the method of c that call describes: it is the inverse of Collectives, for a communicator that passes calls on to another. Where the method
// takes one span of memory, that is in.
func Do(ctx context.Context, c Communicator, call Call, out, in Mem) (Handle, error) {
	switch call.Kind {
	case AllReduce:
		return c.AllReduce(ctx, in, call.Op)
	case ReduceScatter:
		return c.ReduceScatter(ctx, out, in, call.Op)
	case AllGather:
		return c.AllGather(ctx, out, in)
	case Broadcast:
		return c.Broadcast(ctx, in, call.Root)
	case Reduce:
		return c.Reduce(ctx, in, call.Op, call.Root)
	case AllToAll:
		return c.AllToAll(ctx, out, in)
	case Send:
		return c.Send(ctx, in, call.Root)
	case Recv:
		return c.Recv(ctx, in, call.Root)
	case Barrier:
		return c.Barrier(ctx)
	}
	return nil, fmt.Errorf("comm: no such collective: %v", call)
}
