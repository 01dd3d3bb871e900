// Package cpu is the host as a device: family "cpu". It exists in builds with cgo on linux/amd64 and linux/arm64; elsewhere the
// package is empty and npu.Open("cpu") says so. Importing it registers the family.
//
//	import _ "github.com/gotrain/gotrain/npu/cpu"
//	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
//
// # Kernels
//
// An op is executed by the first of these that takes it:
//
//   - short C kernels (package kern), for what the library lacks or does slowly: batch normalisation first of all;
//   - oneDNN, loaded at run time (package dnnl): convolution, matmul, pooling, conversion between layouts;
//   - the plain-Go reference (package ref) on plain layouts, so that every kind of npu/kinds.go works.
//
// Kernel.Impl tells which: "dnnl:brgconv:avx512_core", "c:…", "go:…". A reference implementation of the library is refused
// for convolutions and matmuls while another layout gives a fast one. Info.Slow lists large ops that were left to plain loops all the same.
//
// # bf16 without instructions for it
//
// Our kernels read bf16 and compute in float32 on every processor. The library multiplies bf16 only with AVX-512 BF16 or AMX: for AVX2 it has
// no kernels, for AVX-512 alone some that emulate the instructions and take five times as long as float32. There an op in bf16 is executed as the op in
// float32 (widen.go): what goes in is copied to float32, in the workspace, and what comes out is rounded. That costs a ResNet50's step some 10 %, and
// a Llama's 3 %; memory is saved as ever. Info.Widened says that it is so.
//
// $GOTRAIN_MAX_ISA (base, avx2, avx512, avx512_bf16) limits the instruction sets of both kinds of kernels, to test and to measure what a lesser processor
// does. The library reads its part of it once in a process.
//
// # Layouts
//
// Activations live in Plain, [NHWC] or [NChw16c]. Convolutions get what was measured to be fastest (policy.go): blocks in f32
// with AVX-512, else nhwc; where the channels are not a multiple of 16, nhwc; or what Extra says.
// Everything else keeps the layout of its large input. Weights live in the library's own layouts, named by tokens "w:…" that are
// valid in this process only; pooling indices in "p:…".
//
// # Options
//
// Options.Threads, Share and CPUs are honoured. Options.Extra:
//
//   - layout: auto (default), nhwc or nChw16c: layout of activations, to measure with;
//   - onednn: path of the library (default $GOTRAIN_ONEDNN, then the system's), or "off": work without it, hundreds of times slower;
//   - calibrate: "true" measures Info.Peak with a short matmul at Open.
//
// # Threads and memory
//
// Each stream is an OS thread. The first stream of a device is the compute stream, whose thread owns the OpenMP team of Options.Threads; C kernels on
// other streams use one thread, as libgomp would otherwise start a team for each; the library's kernels, planned for all threads, belong on
// the compute stream. A batch is executed by one C loop, so that the
// goroutine gives the processor away once and not between kernels. Memory is mapped with huge pages, touched in the background from
// Alloc on, and never returned before Free: fresh memory is the dearest thing on a virtual machine.
//
// Pointers in a Bind may lie in buffers of other owners (shared memory of a transport) if Buffer.Host is not nil and is not Go heap.
package cpu
