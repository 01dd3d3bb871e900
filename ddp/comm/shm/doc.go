// Package shm is the transport between ranks of one machine: goroutines of one process (NewLocal) or processes (Join). They share a
// file in memory; a collective is loads and stores.
//
//	c, err := shm.Join(ctx, shm.Config{Job: jobID, Rank: rank, Size: size})
//	grads, err := c.Alloc(bytes)                        // memory that all ranks map
//	h, err := c.AllReduce(ctx, mem, comm.Sum)           // returns at once
//	err = h.Wait(ctx)
//
// # Three words
//
//   - A round is one meeting of all ranks. Each publishes that it has reached the round, and waits until it sees that all others have. Rounds
//     are numbered from 1 over the life of a group; a collective takes one or more of them.
//   - A line is where a rank publishes: one cache line with the number of the round that the rank has reached, which call it makes, and where
//     its memory is. A rank has two, used in turn, so that it can publish a round while a peer still reads its line of the one before. In a round every
//     rank reads one line of each peer.
//   - A slot is 512 KiB of the file into which a rank copies ("stages") a chunk of memory that its peers cannot map. A rank has two, used in
//     turn for the same reason; the line names the one in use.
//
// # What a collective costs
//
// With w ranks and n bytes per rank, for memory that came from Alloc ("direct", read and written where it is) and other memory ("staged", through
// slots):
//
//	                direct: rounds  bytes touched per rank       staged: rounds per chunk
//	AllReduce       2               n read, n written             2
//	ReduceScatter   2               n read, n/w written           1
//	AllGather       2               w·n read and written          1
//	Broadcast       2               n read, n written             1
//	Reduce          2               n read, n/w written           1
//	AllToAll        2               n read, n written             1
//	Barrier         1
//
// AllReduce splits the memory into w parts. Rank r reads part r of all ranks, sums in rank order and stores the sum to all ranks. Nothing is
// copied on the way. Calls of up to 1 KiB, or 16 KiB where there are more ranks than processors ("small"), are always staged, in one
// round: every rank writes its data beside its flag and reads that of the others.
//
// # Who does the work
//
// Calls are state machines in a queue, driven by one goroutine at a time. A call of up to 1 MiB is tried on the spot for a few
// microseconds, which is where a blocking small all-reduce gets its latency from. Otherwise a worker goroutine drives, in a thread of its own while
// it sleeps or copies; a caller that Waits takes over where the worker has not begun.
//
// # Waiting
//
// A rank that waits looks at the flags for at most 20 microseconds. Where there are more ranks than processors it does not look, but
// yields the processor up to four times to whoever wants it. Then it sleeps in the kernel (futex) until the last rank to arrive wakes all. See
// Note [sleeping].
//
// # Where ranks meet
//
// The file has a name only while ranks join: /dev/shm/gotrain-UID/JOB, in a folder that the user alone may enter. What other users of
// the machine put in /dev/shm, under whatever name, is neither opened nor in the way. All ranks of a job run as one user. See Note [names].
//
// # When ranks die
//
// Every rank holds a lock on one byte of the file. The kernel drops it when the process ends, however it ends, and peers that wait look
// at the locks of missing ranks ten times a second: a death is reported as *comm.PeerError within about 100 ms, without pids
// (which are reused, and mean nothing across containers). The file's name is removed as soon as all ranks joined, so that nothing can be
// left behind later; a name left by a job that died while joining is removed by Sweep: of the supervisor, or of the next rank 0 on the machine.
// A rank that gives up while joining, for lack of memory say, tells the others, also those that come later.
//
// A rank that is frozen keeps its lock, and is found by the deadline. One at long work (comm.Work) counts its beats in a word that the others look at, 20
// times a second while they wait for it.
//
// # Memory
//
// Alloc takes memory from an anonymous file that ranks open through the process of rank 0, so /dev/shm need only hold about a megabyte per
// rank. Where that is not possible (ranks in several containers) it comes from /dev/shm, which is 64 MiB in a container by default. Memory is
// reserved before it is used: none left is an error with a hint, not a SIGBUS in the middle of a step. Huge pages are used where the
// kernel grants them.
package shm
