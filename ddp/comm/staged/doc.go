// Package staged moves the memory of a device that has memory of its own through host memory: it copies a span out, lets the host's transport reduce
// or exchange it, and copies the result in. It works with every device and is slower than a device's own transport; it registers with the lowest
// priority, so [comm.ForDevice] opens it only for a device without one. Import it for that side effect:
//
//	import _ "github.com/gotrain/gotrain/ddp/comm/staged"
//
// The first rank announces it with a log line, because a user with fast links between devices will want to know.
//
// # Order
//
// The host's part of a call runs as a host function on a stream of the device, between the two copies. So a reduction can be issued behind an event
// (comm.Ordered), its completion is an event too (comm.OnDevice), and the host never waits between the kernels before it and the kernels after it. A
// device whose streams share one thread is blocked while a host function waits for other ranks; there the transport is right, but hides nothing.
//
// Collectives share one stream; each direction of Send and Recv with a peer has a stream of its own. They use a second group of ranks, made from the
// control communicator by comm.Branch, because the order of their calls must not mix with that of votes.
//
// # Errors
//
// They are those of the host's transport, with the same numbers of calls. After an error the communicator is broken, and so is the control
// communicator; the event of the failed call is reached with the error. Only a *comm.MismatchError leaves both usable; its call changes nothing, and
// its event is reached without an error.
//
// # Memory
//
// Page-locked memory for the largest span of each stream, kept until Close.
package staged
