// Package ref executes every op of package npu in plain Go. It has two roles:
//
//   - the oracle: the slow, readable twin that every faster kernel is tested against. Tensors are stored in the op's types (float32, bfloat16, …), and all
//     arithmetic between load and store is float64. An op with F64 tensors is computed in float64 throughout; the gradient checks use this;
//   - the device family "ref", on which programs run without cgo. It is asynchronous like an accelerator: each stream is a
//     goroutine with a queue, and errors surface later.
//
// As an accelerator would, the device can keep its memory from the host: with npu.Options.Extra["memory"] = "separate", Buffer.Host is nil, and copies are
// asynchronous from and to memory of npu.AllocHost only (other memory is copied before the call returns). "strict" is for tests: a copy from or to other
// memory is refused, a stream works only when someone waits for it, and memory is overwritten when it is freed. So a program that reuses host memory
// before its copy has run computes wrong numbers every time.
//
// Only the plain layout exists here: [Device.Choose] returns Plain for everything. Results do not depend on the number of
// threads: a sum is never split between goroutines.
//
// A single op on host memory:
//
//	err := ref.Run(op, [][]byte{x, w, y}) // inputs then outputs, nil for an unused output
//
// [Check] checks that an op is well formed (number, shapes and dtypes of its arguments against its attributes). Choose and Compile call it, and other
// devices may do the same. The error for an invalid op names the kind and the shapes.
//
// This package decides what npu/kinds.go leaves open:
//
//   - the defaults of attributes are stride 1, pad 0, dilation 1, groups 1, eps 1e-5, momentum 0.1, ignore_index -100, keep false;
//   - the backward convolutions ignore the attribute relu: mask dy with relu_bwd first;
//   - batchnorm of one value per channel is an error, as there is no variance to normalise with;
//   - maxpool: a NaN wins its window; a window entirely within the padding gives -Inf and index -1;
//   - topk: a row whose label has a NaN logit is never correct;
//   - lse of (linear_)cross_entropy is computed for ignored rows too, but no gradient reads it;
//   - attention_cached: a position beyond the cache sees all of it; cache_write: of two rows for one position the later one wins, and after
//     an error nothing has been written;
//   - rope rounds sine and cosine to float32 on F64 tensors too, so "inverse" is the exact gradient, and inverts up to 1e-7;
//   - lars: |g| is the norm after grad_scale;
//   - sumsq: s is the only output, and is read before it is written; it may also be given as the second input.
package ref
