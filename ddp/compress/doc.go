// Package compress makes gradients smaller on their way between ranks. Its codecs are for [ddp.Config]: the engine asks them to encode and decode each
// bucket, and issues the collectives that they name.
//
//	codec, err := compress.New("int8", compress.Options{Raw: func(param string) bool { return biases[param] }})
//	eng, err := ddp.New(ctx, ddp.Config{Params: params, Comm: c, Codec: codec, CodecFrom: 100})
//
// It is of use where the network is the bottleneck: at 1 Gbit/s int8 is about four times as fast as float32, at 10 Gbit/s half as fast again. Between
// ranks of one machine encoding takes longer than moving float32.
//
// On several hosts with as many ranks each, the engine adds gradients up inside each host first, and a codec reduces the sums of hosts, each rank a part of
// them (ddp.OpenCodec). What follows then holds for hosts in place of ranks.
//
// # f16 and bf16
//
// Each rank rounds its gradients to 16 bits, and an all-reduce in that type adds them in float32 and rounds once more. bf16 has the range of float32.
// f16 is more precise, but ends at 65504: gradients are multiplied by a power of two before they are rounded (Options.Factor) and divided by it
// afterwards, so that the sum over all ranks fits. A sum that does not fit becomes an infinity on all ranks, which the norm of the gradients sees;
// Coded.NonFinite reports it where nobody measures the norm.
//
// On a device whose memory the host cannot access, its own kernels cast (Options.Device), in the order of its events; the host then sees nothing of it, so
// the norm must be measured. int8 is not for such devices.
//
// # int8
//
// Gradients are rounded in blocks with a common scale. Ranks exchange parts of the bucket (all-to-all); each adds what it received for its part in
// float32, in rank order, its own values unrounded; it rounds the sum, and all gather the parts. All ranks decode the same bytes, so results are bit-equal.
// This is the shape of ZeRO++'s qgZ (arXiv 2306.10209).
//
// With error feedback (arXiv 1901.09847) a rank keeps what rounding has lost, in both phases, and adds it in the next step: without it values that are
// small within their block vanish. Residuals are kept in 16 bits with a scale per block, at 1/32768 of a step: less than float32 resolves of the
// block's largest value. So the residuals before and after a step fit into the memory of one gradient, and a step that is skipped leaves them as they
// were (Settle). They are in unscaled units: a change of the loss scale does not change what they mean.
//
// Blocks that touch a parameter for which Options.Raw is true travel as float32: norms and biases are few and suffer most. Which blocks these are follows
// from the plan of the buckets, so it is the same on all ranks.
//
// A block with a number that is not finite has the scale NaN. All ranks decode the same NaN.
package compress
