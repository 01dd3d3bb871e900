// Package comm is the contract of collective communication: what the ranks of a data-parallel job can do together,
// whatever carries the bytes.
//
// A Communicator is one rank's end of a group. Its collectives are asynchronous: a call returns a Handle, Wait on it returns when this
// rank's memory holds the result. Ranks call the same collectives in the same order; a rank that calls something else is
// found out and named (*MismatchError), a rank that is late is named when the deadline of the call's context passes (*TimeoutError), a rank
// that died or gave up is named too (*PeerError). Nothing hangs for ever unless the caller passes a context without deadline
// while all peers are alive and none of them calls.
//
//	h, err := c.AllReduce(ctx, m, comm.Sum)
//	if err != nil { return err }   // the call was refused: bad arguments, or the group is broken
//	return h.Wait(ctx)             // nil: m holds the sum over all ranks
//
// # Long work
//
// A rank that has to do something long while the others wait (a checkpoint, a start) says so, and they wait with two deadlines, one for a
// rank that shows no life and one for the work as a whole. See Note [long work].
//
//	end := comm.Steady(c, "writing the checkpoint", progress)   // the rank at work
//	defer end()
//	ctx, cancel := comm.Patient(ctx, 5*time.Minute, time.Hour)  // the ranks that wait
//
// # Memory
//
// Collectives take Mem: a typed span of an npu.Buffer. Memory that came from Communicator.Alloc is reduced in place without a copy
// of the transport's own; other host memory (Host wraps a byte slice, HostOf a slice of numbers) works too, more slowly.
//
// # Transports
//
// Sub-packages hold one transport each: self (one rank), shm (ranks of one machine, whether goroutines or processes). All
// pass the same suite, commtest. reduce holds the arithmetic.
//
// # Rules for an implementer
//
// Check arguments with Call.Check and compare Call.Key between ranks; both are shared so that all transports refuse the same
// mistakes with the same words. Sum in rank order, (r0+r1)+r2+…, in float32 for 16-bit floats with one rounding at the end: that makes
// the result equal on all ranks, from run to run, and between transports that keep to it. Zero elements and one rank are
// ordinary cases.
package comm
