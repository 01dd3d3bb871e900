// Package perf measures the collectives of a Communicator: how long they take over a range of sizes, whether every element is right, and what bounds them.
//
//	sizes, err := perf.Sizes(4<<10, 256<<20, perf.Growth{Factor: 4})
//	sum, err := perf.Run(ctx, c, perf.Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: sizes}, func(r perf.Row) { … })
//	fmt.Println(sum.Verdict())
//
// All ranks call Run with the same Config; each gets the same rows. gotrain bench is its command line.
//
// # What a row says
//
// A size is repeated, each time from a common start: the ranks agree to begin, by a tiny all-reduce (Config.Start), and then each measures its own call.
// Median, Min and P99 are those of the slowest rank. Bytes count as nccl-tests and hccl_test count them: the larger side of the call. AlgBW is bytes /
// time; BusBW is what a link of each rank must carry for it, so that it can be compared with the speed of that link whatever the number of ranks: AlgBW
// times 2(w−1)/w for an all-reduce, (w−1)/w for all-gather, reduce-scatter and all-to-all, 1 for broadcast and reduce.
//
// # Every element
//
// Before each call, memory is filled with small whole numbers that depend on rank, place and repetition, so that sums are exact in every order and type, and
// no result of an earlier call can pass for this one. After each call every element is compared with what it must be, above and below; so are memory that
// the call only reads, and a guard behind the memory that it writes. Row.Wrong counts over all ranks, Row.First is the first of this rank. The comparison is
// outside of the measured time.
//
// Config.Reducer measures something else than the collective itself, such as a reduction in fewer bits; Tolerance then says how far a sum may be off.
//
// # What bounds it
//
// Where the transport knows its links (comm.Describer), Verdict compares what the largest call sent over the slowest of them with the speed that was measured
// at the start. In shared memory the bound is memory: Run lets all ranks copy as many bytes as the call must read and write, at the same time.
package perf
