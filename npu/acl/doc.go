// Package acl is the device family "npu": Ascend NPUs through CANN, Huawei's library, which is loaded at run time.
//
//	import _ "github.com/gotrain/gotrain/npu/acl"
//	dev, err := npu.Open("npu", npu.Options{Index: 0})
//
// The translation of ops into CANN's operators is package lower; this package runs the result. Package cann has the C functions.
//
// # One thread
//
// A device has one OS thread, which alone calls CANN for it (thread.go): contexts and error texts of CANN belong to threads. Streams are queues of commands
// (stream.go, command.go). The thread gives commands to CANN's streams as far as it can, asks CANN now and then for events that somebody waits for, and runs
// functions that goroutines hand to it. It never waits inside of CANN for longer than about a millisecond, so a wait ends with its context, whatever the
// device does. Where CANN has no asynchronous form (a host function in stream order, a copy to Go's memory), the stream's queue is held instead. If a call
// of CANN itself hangs, waits still end with their contexts, and what cleans up, Close too, gives up after half a minute with an error.
//
// # Memory
//
// Alloc cuts pieces of 512-byte alignment from large blocks (arena.go) and clears them. AllocHost gives page-locked memory; copies from and to it
// are asynchronous. All other host memory is copied through a ring of 64 MiB of page-locked memory (staging.go): CANN never gets a pointer to
// Go's memory.
//
// # Kernels
//
// Compile lowers an op and asks CANN for the workspace of each call. Bind makes tensors, scalars and arrays for the final addresses and has CANN
// prepare each call once (its first phase). Run then only calls second phases, dozens of launches with one call from Go to C, and allocates
// nothing. An operator that CANN cannot prepare once gets a first phase for each launch, and so does AdamW's, which wants numbers on the host that
// are an input of the op: the thread notes what copies bring there when it gives them to CANN, and asks the device if something else did (mirror.go).
// CANN is kept at most some hundred calls ahead of the device (pace.go), because it cannot take launches back when a step is abandoned.
//
// # Errors
//
// An error of a call names the op, the call with its arguments' names, the code with its meaning, and CANN's text. What fails on the device shows
// at a later wait only; the error then lists the latest launches, and the option debug_sync=true finds the one. After such an error, or a code of
// 507xxx, CANN's context is dead: every later call returns that first cause, and the process must be started again (exit code 69).
//
// # Options
//
// npu.Options.Index is the device, as CANN counts after ASCEND_RT_VISIBLE_DEVICES; CPUs bind the thread. Options.Extra:
//
//	device         number of the device, instead of Index
//	deterministic  true (default): operators sum in a fixed order, so a run can be repeated bit by bit; false: faster
//	allow_hf32     true: products of f32 have about 13 bits instead of 24
//	exact_dw       true: f32 results of products of 16-bit operands are not rounded to 16 bits on the way, which costs time before CANN 9.0
//	debug_sync     true: wait after each operator, so that an error names it; slow
//	reuse          false: have CANN prepare each operator anew for each launch, which takes the host several times as long
//	memory_mib     take so much memory at once, and never more
//	experimental   true: open a device of the 950 family, which is not supported yet
//
// Atlas A2 (Ascend910B1…B4) and A3 (Ascend910_93xx) are supported. f16 is offered only where the device has infinities and NaN in f16.
//
// # Status
//
// Tested with the fake CANN of package fakecann, which computes on the host and is stricter than the documents. Nothing has run on an NPU.
package acl
