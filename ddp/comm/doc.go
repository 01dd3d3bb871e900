// Package comm defines collective communication between the ranks of a data-parallel job, independent of the
// transport.
//
// A Communicator is one rank's end of a group. Its collectives are asynchronous: a call returns a Handle, Wait on it returns when this
// rank's memory holds the result. Ranks call the same collectives in the same order. Errors name
// a rank that makes a different call (*MismatchError), a rank that is late when the deadline of the call's context passes
// (*TimeoutError), and a rank that died or gave up (*PeerError). A call hangs forever only if its context has no deadline
// and a peer is alive but never calls.
//
//	h, err := c.AllReduce(ctx, m, comm.Sum)
//	if err != nil { return err }   // the call was refused: bad arguments, or the group is broken
//	return h.Wait(ctx)             // nil: m holds the sum over all ranks
//
// # Long work
//
// A rank that does long work while the others wait (a checkpoint, startup) reports it, and they wait with two deadlines, one for a
// silent rank and one for the work as a whole. See Note [long work].
//
//	end := comm.Steady(c, "writing the checkpoint", progress)   // the rank at work
//	defer end()
//	ctx, cancel := comm.Patient(ctx, 5*time.Minute, time.Hour)  // the ranks that wait
//
// # Memory
//
// Collectives take Mem: a typed span of an npu.Buffer. Memory from Communicator.Alloc is reduced in place without an extra
// copy; other host memory (Host wraps a byte slice, HostOf a slice of numbers) also works, but more slowly.
//
// # Control and data
//
// A device may have memory of its own, which a host's transport cannot reach. Then a job has two communicators over the same ranks: the control
// communicator for what hosts exchange (votes, comparisons, statistics, aborts, long work), and a data communicator for gradients and weights, which
// ForDevice opens for the device: transports for devices register (RegisterTransport) as devices do. Where device memory is host memory, both are the same.
//
// A data communicator may be ordered by events of the device (Ordered, OnDevice): a reduction starts behind the kernels that write its memory, and kernels
// that read the result start behind the reduction, without a wait of the host in between. Closing order: the data communicator, the device, the
// control communicator. An abort of either breaks both.
//
// # Transports
//
// Sub-packages hold one transport each: self (one rank), shm (ranks of one machine, whether goroutines or processes), staged (device memory, through host
// memory and another transport). All pass the same suite, commtest. reduce holds the arithmetic.
//
// # Rules for an implementer
//
// Embed Collectives and write one function for all of them. Check arguments with Call.Check and compare Call.Key between ranks; both are shared so that all
// transports reject the same mistakes with the same messages. Sum in rank order, (r0+r1)+r2+…, in float32 for 16-bit floats with one rounding at the end:
// this makes the result equal on all ranks, from run to run, and between transports that follow it. Zero elements and one rank are ordinary cases.
//
// Say what is known, and no more. A transport in which a rank does not hear from every other one may be unable to tell when the last rank arrived
// (Handle.Took) or which rank is late (TimeoutError): both have a way to say so, and nothing above makes a guess of it. Describer is for transports that
// know their links.
package comm
