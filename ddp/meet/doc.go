// Package meet brings the ranks of a job on several hosts together, and tells each of them how the others are. It is the control plane: it moves no gradients
// and knows no collective. On one host with shared memory nobody needs it.
//
//	g, err := meet.Join(ctx, meet.Config{Rank: 3, World: 16, Job: "1234", Place: place, …}) // place: package find
//	defer g.Close()
//	conns, err := g.Connect(ctx, 1, ranks)            // TCP connections for a transport
//	all, err := g.Exchange(ctx, "link", mine)         // small messages: a table, settings
//	g.Progress(n)                                     // "I have issued n collectives"
//	beat, end := g.Work("writing a checkpoint")       // "I am busy, wait for me"
//	life := g.Life(5)                                 // the same of another rank
//	err = g.Report(5, "connection reset")             // "rank 5 seems to have failed": returns the first cause
//	<-g.Down(); err = g.Err()                         // the job has failed, why
//
// # Meeting
//
// The process of rank 0 has a coordinator, to which every rank has one control connection. A rank finds it at Place: at an address, or
// where rank 0 published one. Names are resolved again at each attempt, all addresses are tried at a time, and attempts go on, with
// jittered pauses from 50 ms to 1 s, until Timeouts.Start has passed. Every connection begins with a handshake in which both sides prove
// that they know the job's token; package wire has the bytes. What comes in without a handshake is closed: at once if it speaks another
// protocol, else after Timeouts.Handshake. At most 64 connections may be in their handshake at a time. Strangers are mentioned in the log
// once in ten seconds.
//
// A proved rank says who it is: host, process, version of the binary, device, machine, and the address of its listener for data. When all are there, the
// coordinator checks that they fit (versions, devices, local ranks, addresses) and sends everybody the roster, or everybody the sentence why not. Until then
// it says every ten seconds for whom it waits: "waiting for ranks 4–7 of host n2; 12 of 16 have joined".
//
// # Nodes
//
// Ranks are on one node if they can share memory, which function Machine decides by the kernel's boot id and the identity of /dev/shm, and if their launcher
// did not give them different node numbers. Containers of one host are therefore nodes of their own unless they share a /dev/shm, and a launcher may split a
// machine, for a test, but cannot join two. Nodes are numbered in the order of their first ranks, local ranks in the order of ranks.
//
// # Addresses
//
// A rank listens for data on the address by which it reached rank 0: that one is on the right network, while the own host name may stand for anything. Ranks
// on rank 0's host, which reached it by loopback, have the address of rank 0; and that is the one by which the reader of a roster reached rank 0.
// Config.Interface, or a variable of HCCL, NCCL or gloo, chooses another interface; Config.Ports limits the ports. Group.Address says what was chosen. A
// loopback address that a rank of another network would have to use is refused, as are multicast addresses.
//
// # Data connections
//
// Connect makes one connection between each pair of some ranks; a stream number tells those of several transports apart. The higher rank dials. Then all
// ranks learn how dialing went. Pairs that failed are tried in the other direction, and every rank returns the same *MeshError:
//
//	rank 5 (n3, 10.1.0.7) cannot reach rank 3 (n2, 10.0.0.2:41823): no route to host; 3 → 5 works
//
// # Signs of life
//
// Every rank sends a heartbeat each 500 ms (Config.Heartbeat of rank 0), with the number of its collectives and its long work; the coordinator sends
// everybody what has changed of all: some 2 kB a beat where 1000 ranks train. What Life returns is thus at most two beats old. A rank from which
// nothing came for eight beats has failed. So has rank 0 for a rank that hears nothing from it. Time in which the watching process itself did not run
// does not count, so a job may be suspended as a whole. With heartbeats off, silence is no failure: for debuggers.
// Control and data connections have keepalive probes, and between hosts a limit of the same eight beats
// for unacknowledged data (TCP_USER_TIMEOUT), because probes rest while data are on their way.
//
//	what happens                          who notices                         after (measured)
//	a process is killed                   the coordinator: end of stream      2 ms
//	a process is stopped (SIGSTOP)        its silence                         4 s (eight beats)
//	a link is down, packets are dropped   silence, or TCP's own limit         4 to 4.5 s
//	rank 0 or its host is gone            each rank for itself                the same
//
// # The first cause
//
// When a rank fails, many things break at once, and each rank sees another symptom. The coordinator decides for all: a rank that gives up (Abort) or whose
// process ends is the cause. A broken data connection (Report, or Abort with an error that blames another rank) waits 0.4 s for such a cause; if none comes,
// the rank that most ranks report is it. Everybody gets the same *Fault, whose exit code is 69: this process is a victim. If rank 0 is gone, that is the
// cause. There is no reconnecting: what TCP itself cannot bridge ends the job, and the checkpoint is the truth.
//
// # Leaving
//
// Close leaves in order; what ends then is no failure. Rank 0 waits up to Timeouts.End for the others; after that they go on without heartbeats. A group has
// to be closed also after it failed. Ranks of an earlier generation, left over from before a restart, are told "generation 3 is over".
//
// # Deadlines
//
//	Timeouts.   default   error names
//	Start       300 s     the ranks that have not come, or rank 0 and what was met at its address
//	Handshake   2 s       –
//	Mesh        30 s      the pairs that cannot connect, or the ranks that did not call Connect
//	Exchange    300 s     the ranks that have not called it
//	End         30 s      the ranks that have not left (a warning of rank 0)
//
// Errors are *LateError (a deadline; exit code 124), *RefusedError (ranks do not fit, or strangers; 69), *MeshError (69), *Fault (69), or of usage (64).
//
// # Trust
//
// Who knows the token can do everything to the job; who does not, nothing but cost it closed sockets. Without a token (Place.Open) the job's id takes its
// place, which keeps mistakes out. Nothing is encrypted: across networks that others can read, use a VPN. See docs/decisions/0014-rendezvous.md.
package meet
