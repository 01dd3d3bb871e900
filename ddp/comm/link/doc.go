// Package link says what a network link gives and what a collective over it costs. It is pure: numbers in, numbers out, no sockets.
//
// A Link has four numbers: the time of a small message (α), the bytes a second of one direction of a network card (1/β), the time that a sender spends
// on each further peer (o), and the time to add a byte of gradients (γ). A transport measures them at start; a person writes them down:
//
//	l, err := link.Parse("25gbit,20us")
//
// Bits are the speed on the label of the wire, of which Ethernet, IP and TCP headers take 6 %; bytes (12.5GB/s) are payload, as a program measures it.
//
// # What a collective costs
//
// An all-reduce of n bytes over w ranks, each with a card of its own, takes about
//
//	exchange   α + (w−2)o + (w−1)n(β+γ)                          everybody sends all to all
//	mesh       2(α+(w−2)o) + 2(w−1)/w·nβ + (w−1)/w·nγ            reduce-scatter to owners, all-gather
//	gather     exchange + ⌈log₂w⌉(α+nβ)                          to rank 0, and back along a binomial tree
//	chain      2(w−1)α + 2nβ + nγ  (w = 2: 2α + nβ + nγ)         prefix sums up, the result down, in a pipeline
//	ring       2(w−1)α + 2(w−1)/w·nβ + (w−1)/w·nγ                every part goes round
//
// All but the ring add in the order of ranks, so that a result depends neither on the algorithm nor on the size of the message. Topology is what a user
// chooses; Choose and Table say which algorithm that means for a number of bytes. Small calls cost steps and large calls cost bytes, so a topology has a
// small algorithm, a large one, and a crossover between them.
//
// # Hosts with several ranks
//
// Cluster describes hosts whose ranks first reduce among themselves and share one card. Its costs are those of the two levels, with the part of them
// that a pipeline of pieces hides.
package link
