// Package nodes is the transport of a job on several hosts: ranks of a host meet in one group, usually shared memory, and hosts in others, usually TCP.
// Gradients are summed inside each host first, so that every host sends each number over the network once, however many ranks it has.
//
//	c, err := nodes.New(nodes.Config{
//		Inner:   inner,                  // the ranks of this host: a shm.Comm
//		Outer:   outer,                  // ranks of equal index on all hosts: a tcp.Comm
//		Rank:    rank,
//		NodeOf:  []int{0, 0, 1, 1},      // where each rank of the job is
//		Control: group,                  // a meet.Group
//	})
//	h, err := c.AllReduce(ctx, mem, comm.Sum)
//
// # Words
//
// A node is a host, or what the launcher calls one. The local rank is a rank's index among those of its node. A rail joins the ranks of one local rank on
// all nodes: its ranks, in the order of nodes, are one outer group. If all nodes have as many ranks, every rank is on a rail, and all rails carry a
// part of each large call. Otherwise only the first rank of each node is: the leaders.
//
// # How a call travels
//
//	greeting    ranks of a node tell each other what they call, then nodes do. Small calls carry their data along and end here: one round inside the
//	            node, one trip over the network.
//	pieces      a large call is cut into pieces. Each is reduced inside the node, so that every rank holds a part of the node's sum; the part is reduced
//	            on the rank's rail; the parts are gathered inside the node. The node works on one piece while another is on the wire.
//
//	                inside a node, before    on the rail          inside a node, after
//	AllReduce       reduce-scatter           all-reduce           all-gather
//	Reduce          reduce-scatter           reduce               all-gather, on the node of the root
//	Broadcast       broadcast, at the root   broadcast            all-gather, elsewhere
//	ReduceScatter   reduce-scatter           reduce-scatter
//	AllGather                                all-gather           all-gather
//	AllToAll        all-to-all               all-to-all
//
// With leaders the first column is a reduction, a gather or nothing, the rails are those of the leaders only, and the last is a broadcast.
//
// # The order of sums
//
// Sums are made node by node, in the order of node numbers, and inside a node rank by rank: with ranks 0 and 1 on node 0 and 2 and 3 on node 1,
// (r0+r1)+(r2+r3). Results are therefore equal for equal places of the ranks, whatever the network, the sizes and the timing; on other places, sums of
// floating-point numbers differ by rounding. 16-bit floats are rounded twice: the sum of a node, made in float32, is rounded to 16 bits, because that is
// what travels; then the sum of the nodes, again made in float32. Max, min and integers do not depend on the order. (An outer group that reduces in
// another order than that of its ranks, a ring, makes other sums; then they depend on the place of an element too.)
//
// # Level by level
//
// A user that does something else between hosts, such as sending encoded gradients, makes groups of one level (Chain). Their calls go straight to the inner
// or the outer group, without greeting and cutting.
//
// # Mismatches, late ranks, deaths
//
// A greeting carries two calls of each node: that of its first rank, and that of a rank that differs, if any. So every rank finds a mismatch wherever it is,
// and the groups stay in step.
//
// A rank that waits for another node is not late, although the ranks of its node wait for it. So no call of the inner and outer groups has a deadline.
// A guard looks at the deadlines of the call and at what the Control knows of each rank, and decides which ranks have not come.
//
// When a rank gives up or dies, the reason travels through the Control and through all groups, whichever is faster, with the rank that it began with.
package nodes
