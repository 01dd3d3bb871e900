// Package ref executes every op of package npu in plain Go. It is two things:
//
//   - the oracle: the slow, readable twin that every faster kernel is tested against. Tensors are stored as the op says (float32, bfloat16, …)
//     and all arithmetic between load and store is float64. An op whose descs are F64 is computed in float64 from end to end, which is what the
//     gradient checks use;
//   - the device family "ref", on which programs run where cgo is off. It is asynchronous like an accelerator: each stream is a
//     goroutine with a queue, and errors arrive late.
//
// Only the plain layout exists here: [Device.Choose] answers Plain for everything. Results do not depend on the number of
// threads: no sum is ever split between goroutines.
//
// A single op on host memory:
//
//	err := ref.Run(op, [][]byte{x, w, y}) // inputs then outputs, nil for an unused output
//
// [Check] says whether an op is well formed (number, shapes and dtypes of its arguments against its attributes) and is what
// Choose and Compile call; other devices may use it for the same purpose. A wrong op gives an error that names the kind and the shapes.
//
// Where npu/kinds.go leaves something open, this package decides:
//
//   - absent attributes are stride 1, pad 0, dilation 1, groups 1, eps 1e-5, momentum 0.1, ignore_index -100, keep false;
//   - the backward convolutions ignore the attribute relu: mask dy with relu_bwd first;
//   - batchnorm of one value per channel is an error, as there is no variance to normalise with;
//   - maxpool: a NaN wins its window; a window that lies wholly in the padding gives -Inf and index -1;
//   - topk: a row whose label has a NaN logit is never correct;
//   - lse of (linear_)cross_entropy is made of ignored rows too, and no gradient reads it there;
//   - attention_cached: a position beyond the cache sees all of it; cache_write: of two rows for one position the later one stays, and an error writes nothing;
//   - rope rounds sine and cosine to float32 on F64 tensors too, so "inverse" is the exact gradient, and the inverse up to 1e-7;
//   - lars: |g| is the norm after grad_scale;
//   - sumsq: s is the only output, and is read before it is written; it may be named as second input too.
package ref
