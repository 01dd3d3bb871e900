// Package bucket cuts a list of gradients into buckets: flat ranges of memory, each reduced by one collective.
//
// Plan is a pure function. Every rank computes it from the same list and gets the same plan; Fingerprint lets ranks verify it.
//
// # Which bucket is small, and why
//
// Gradients come in ready order: the order in which the backward pass completes them. With bucket k reduced while later gradients are
// computed, a step costs
//
//	max over k of (moment bucket k is ready + time to reduce buckets k … last)
//
// Two terms of it can be chosen by cutting. The first bucket is small (FirstBytes) so that the wire starts early: nothing can be hidden before
// the first bucket is full. The last bucket is small too (LastBytes), because its reduction begins when the backward is over and
// no computation is left to hide it: the exposed time is at least reduce(last bucket). The buckets in between are as large as the cap, for
// fewer calls. This suits convolutional nets: the last gradients are those of the stem and the first stage, a few hundred KiB.
//
// # Layout
//
// A bucket holds one dtype. Its parameters are sorted by Group (decay or not, for example), in ready order within the group, so that an
// optimizer can run one kernel over each Run of a group. Every parameter begins on an AlignBytes boundary; a bucket is padded to a multiple of
// World × AlignBytes, so that it splits evenly and aligned among ranks; buckets begin on a page. Padding is never written by
// a gradient; kernels that run over it see zeros.
package bucket
