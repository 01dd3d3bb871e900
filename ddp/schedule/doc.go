// Package schedule decides in which order the collectives of a step are issued. It is pure: package ddp runs it against a clock on the wall, package
// simulate against one on paper.
//
// A step reduces buckets, in plan order. Without a codec a bucket takes one collective; with one it takes a collective per phase, and each needs the one
// before it. Ranks must issue the collectives of one group in the same order, whatever their timing, and no rank may wait for a bucket that it does not
// have while another rank has issued something else. Both follow from two rules:
//
//   - Every phase has a group of its own (a lane), whose order is the order of buckets. The order of a lane is a list that is known before the first step,
//     so it cannot differ between ranks.
//   - An item of a lane waits for nothing but the item before it, its own gradients (phase 0), or the collective of its bucket in the phase before.
//
// So phase 1 of bucket 0 is on the wire while bucket 1 is still being computed, on every rank as soon as it can be, and no rank holds up another by what it
// has not computed yet. Where a transport cannot make a second group, one lane has all phases, bucket by bucket: correct, but the wire rests while a bucket
// is encoded between its phases.
//
// Plan has the lanes. Run is the state of one step: events go in (Ready, Open, Done), and items that may be issued now come out (Next).
package schedule
