// Package shm is the transport between ranks of one machine: goroutines of one process (NewLocal) or processes (Join). They share an
// in-memory file; a collective is loads and stores.
//
//	c, err := shm.Join(ctx, shm.Config{Job: jobID, Rank: rank, Size: size})
//	grads, err := c.Alloc(bytes)                        // memory that all ranks map
//	h, err := c.AllReduce(ctx, mem, comm.Sum)           // returns immediately
//	err = h.Wait(ctx)
//
// # Three words
//
//   - A round synchronises all ranks. Each rank publishes that it has reached the round and waits until all others have. Rounds
//     are numbered from 1 over the life of a group; a collective takes one or more rounds.
//   - A line is what a rank publishes: one cache line with the number of the round it has reached, the call it makes, and the location of
//     its memory. A rank has two lines, used alternately, so that it can publish a round while a peer still reads its line of the previous round. In
//     each round a rank reads one line of each peer.
//   - A slot is 512 KiB of the file into which a rank copies ("stages") a chunk of memory that its peers cannot map. A rank has two,
//     used alternately for the same reason; the line names the current one.
//
// # What a collective costs
//
// With w ranks and n bytes per rank, for memory from Alloc ("direct", accessed in place) and other memory ("staged", through slots):
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
// AllReduce splits the memory into w parts. Rank r reads part r of all ranks, sums in rank order and stores the sum to all ranks. There are
// no intermediate copies. Calls of up to 1 KiB, or 16 KiB if there are more ranks than processors ("small"), are always staged, in one
// round: every rank writes its data next to its flag and reads that of the others.
//
// # Who does the work
//
// Calls are state machines in a queue, driven by one goroutine at a time. A call of up to 1 MiB is attempted inline for a few
// microseconds, which gives a blocking small all-reduce its low latency. Otherwise a worker goroutine drives, on a separate thread while
// it sleeps or copies; a caller in Wait takes over if the worker has not begun.
//
// # Waiting
//
// A rank in Wait polls the flags for at most 100 microseconds. Elsewhere, where its processor has other work, it polls for 3, or 25 while the others are
// at their shares of the call. If there are more ranks than processors it does not poll, but yields the processor up to four times. Then it sleeps in the
// kernel (futex) until the last rank to arrive wakes all. See Note [sleeping].
//
// # Rendezvous
//
// The file has a name only while ranks join: /dev/shm/gotrain-UID/JOB, in a folder that only this user may enter. Files that other users
// put in /dev/shm, under any name, are not opened and do not interfere. All ranks of a job run as one user. See Note [names].
//
// # When ranks die
//
// Every rank holds a lock on one byte of the file. The kernel releases it when the process ends for any reason, and waiting peers check
// the locks of missing ranks ten times a second: a death is reported as *comm.PeerError within about 100 ms, without pids
// (which are reused, and are meaningless across containers). The file's name is removed as soon as all ranks have joined, so that nothing can be
// left behind later; Sweep, called by the supervisor and by the next rank 0 on the machine, removes the name left by a job that died while joining.
// A rank that gives up while joining, for example for lack of memory, notifies the others, including those that arrive later.
//
// A frozen rank keeps its lock; the deadline detects it. A rank at long work (comm.Work) counts its beats in a word that waiting ranks read 20
// times a second. Time during which the waiting rank itself was suspended does not count.
//
// # Memory
//
// Alloc takes memory from an anonymous file that ranks open through the process of rank 0, so /dev/shm need only hold about a megabyte per
// rank. If that is not possible (ranks in several containers) it comes from /dev/shm, which is 64 MiB in a container by default. Memory is
// reserved before use: running out is an error with a hint, not a SIGBUS in the middle of a step. Huge pages are used if the
// kernel grants them. It is aligned to cache lines, not to pages: each rank's begins at another place of a page, see colour in alloc.go.
package shm
