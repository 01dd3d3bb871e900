// Package cpu is the host CPU as a device, family "cpu". It exists in builds with cgo on linux/amd64 and linux/arm64. Elsewhere the package is empty and
// npu.Open("cpu") reports that. Importing it registers the family.
//
//	import _ "github.com/gotrain/gotrain/npu/cpu"
//	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
//
// # Kernels
//
// An op is executed by the first of these that supports it:
//
//   - short C kernels (package kern), for what the library lacks or does slowly, above all batch normalisation;
//   - oneDNN, loaded at run time (package dnnl): convolution, matmul, pooling, conversion between layouts;
//   - the plain-Go reference (package ref) on plain layouts, so that every kind of npu/kinds.go works.
//
// 3x3 convolutions of stride 1 in f32 and bf16 are also computed by Winograd's algorithm, where the op names it (npu.AttrAlgorithm, winograd.go).
// Weight gradients of other convolutions in bf16 have a kernel that multiplies pairs of pixels (pairs.go).
//
// Kernel.Impl names the one used: "dnnl:brgconv:avx512_core", "c:…", "go:…". A reference implementation of the library is not used for convolutions and
// matmuls if another layout has a fast one. Info.Slow lists large ops that plain loops execute nevertheless.
//
// # bf16 without bf16 instructions
//
// The kernels of package kern read bf16 and compute in float32 on every processor. The library multiplies bf16 only with AVX-512 BF16 or AMX: it has no
// bf16 kernels for AVX2, and for plain AVX-512 some that emulate the instructions and take five times as long as float32. There, a bf16 op is executed as
// the float32 op (widen.go): inputs are copied to float32 in the workspace, and outputs are rounded. Convolutions are computed for a few pictures at a time,
// whose copies stay in a cache (pieces.go). It saves as much memory as elsewhere. Info.Widened reports it.
//
// Some processors have slow bf16 instructions: Sapphire Rapids in a virtual machine that hides AMX multiplies bf16 at half the rate of float32. So Open
// measures, once a process and in a millisecond, and products there are float32 too (products.go). AMX is preferred without a measurement.
//
// $GOTRAIN_MAX_ISA (base, avx2, avx512, avx512_bf16) limits the instruction sets of both kinds of kernels, to test and measure older processors. The library
// reads its limit once per process.
//
// # Layouts
//
// Activations are Plain, [NHWC], [NChw16c] or [NChw8c]. Convolutions use the layout that was measured to be fastest (policy.go): in f32 blocks of 16 channels
// with AVX-512 and of 8 with AVX2, otherwise nhwc; nhwc if the channels are not a multiple of the block; or the one that Extra specifies. Everything else keeps
// the layout of its large input. Weights have the library's own layouts, named by tokens "w:…" that are valid in this process only; pooling indices use
// tokens "p:…".
//
// # Options
//
// Options.Threads, Share and CPUs are honoured. Options.Extra:
//
//   - layout: auto (default), nhwc, nChw16c or nChw8c: layout of activations, for measurements;
//   - bf16: auto (default), native or f32: how products of bf16 tensors are computed, by measurement, by bf16 instructions, or in float32;
//   - onednn: path of the library (default $GOTRAIN_ONEDNN, then the system's), or "off" to work without it, hundreds of times slower;
//   - calibrate: "true" measures Info.Peak with a short matmul at Open.
//
// # Threads and memory
//
// Each stream is an OS thread. The first stream of a device is the compute stream, whose thread owns the OpenMP team of Options.Threads. C
// kernels on other streams use one thread, because libgomp would otherwise start a team for each. The library's kernels are planned for all
// threads and belong on the compute stream. Long runs of package kern's own kernels, as in generation, have a team of their own
// (kern.Team). Between primitives of the library OpenMP's threads are awake, and the threads of a second team would only compete with them.
// A batch is executed by one C loop, so that the goroutine gives up the processor once and not between kernels. Memory is mapped with huge
// pages, touched in the background from Alloc on, and not returned before Free: fresh memory is the most expensive resource of a virtual
// machine.
//
// Pointers in a Bind may point into buffers of other owners (a transport's shared memory) if Buffer.Host is not nil and is not on the Go heap.
package cpu
