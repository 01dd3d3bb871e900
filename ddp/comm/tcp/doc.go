// Package tcp is the transport between ranks that reach each other over a network: a connection between every two of them, and one thread that moves
// bytes and adds numbers.
//
//	g, err := meet.Join(ctx, …)                                   // who the ranks are
//	c, err := tcp.Open(ctx, tcp.Config{Control: g})
//	h, err := c.AllReduce(ctx, mem, comm.Sum)                      // returns immediately
//	err = h.Wait(ctx)
//
// # How reductions travel
//
//	exchange   small   everybody sends everything to all, and adds
//	mesh       large   every rank adds one part of all ranks, and sends the sum to all
//	gather     tree, small; more than 32 ranks, small   to rank 0, and back along a binomial tree
//	chain      tree, large   prefix sums up the ranks, the result down
//	ring       ring, large   every part goes round
//
// All but the ring add in the order of ranks, so the bits of a result depend neither on the algorithm nor on timing. 16-bit floats are added in
// float32 and rounded once; where a chain would round at every rank, they are gathered. A ring adds part k from rank k+1 on, and rounds at every rank.
// Package link says which size takes which algorithm. Its numbers are measured when the group opens (Config.Link), and all ranks take the same.
//
// # On the wire
//
// Memory is cut in pieces of 128 KiB. A header of 32 bytes precedes every piece: its length, the number of the call, the call itself, and the place of
// the piece in it. Every call sends at least one piece to every peer, though it may be empty. So every rank hears from all others what they call: that
// is how a mismatch is found on every rank, how Took tells waiting from transfer, and what a barrier is. A piece of a call that this rank has not made
// yet stays where it is, and the network holds up its sender.
//
// # Who does the work
//
// Calls are executed one after another in the order of issue, by one driver at a time: a worker with an OS thread of its own, or the caller in Wait.
// The driver uses non-blocking system calls of its own. Go's poller would cost a third of a small call. It looks for 50 microseconds before it sleeps.
// Where the ranks of this machine are more than its processors, it yields once instead.
//
// # When something breaks
//
// Errors are final, except a mismatch. A broken connection is reported to the Control, whose verdict names the rank that failed first, the same for all.
// Errors name ranks of the job, which differ from those of the group where Config.Ranks chooses some.
package tcp
