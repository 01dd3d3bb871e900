// Package fakecann builds a fake of CANN, Huawei's library for Ascend NPUs, that computes on the host and is stricter than the real one. Tests load
// it instead of CANN; gotrain itself never does.
//
//	dir := fakecann.Install(t, fakecann.Options{})     // compiled once per machine; skips the test where there is no C compiler
//	cmd.Env = append(os.Environ(), fakecann.Env(dir, "FAKE_CANN_DEVICES=4")...)
//
// The folder looks like an installed toolkit: set ASCEND_HOME_PATH to it (Env does). lib64 holds libascendcl, libnnopbase, libopapi (8.1) or
// libopapi_{math,nn,transformer} (9.0), libhccl (9.0: and libhcomm) and libdcmi, which forward to libfakecann.so. The exports are generated from the
// table of signatures in package abi, so a prototype that differs from the table does not compile.
//
// # What is strict
//
// Device memory: the host cannot read it (a device address is not mapped; dereferencing it crashes). Fresh memory holds 0xA5, freed memory 0x5A, and
// it stays in quarantine. Guard zones around every block are checked at every synchronisation. A kernel or copy that meets freed or unknown memory
// ends with 507015 at the next synchronisation, and the context is dead from then on. Copies from page-locked memory happen late, when the stream
// gets to them; copies from other memory happen before the call returns.
//
// Threads: a call without a device on its thread is refused (107002), as is a stream of another context (107003).
//
// Executors: one use, unless they were made repeatable on the same thread, directly after the first phase. Tensors must outlive a repeatable one.
// Workspaces are checked for size, alignment and owner, and poisoned after each kernel.
//
// Order: two tasks on different streams that touch the same memory need an event or a synchronisation between them. This is judged from what was asked
// for, not from what happened to run first. Graphs are not looked at.
//
// What a program may never do, whatever code it got for it, is a violation: it is printed with the function's name and counted in the statistics.
// Tests assert zero.
//
// # Operators
//
// All operators of the table but four kinds of attention that gotrain does not call (they answer 561003). They read and write through strides, offsets
// and repeated elements, compute in f32 (sums and statistics in f64), and round once, to nearest even. What the documentation of the real one refuses
// is refused with its code and a text that names the argument. Differences between chips and versions that are easy to miss:
//
//   - BatchNorm's saveInvstd is the biased variance on 910, A2 and A3, and 1/std on 950; BatchNormBackward reads the same.
//   - The padding of convolutions is top, bottom, left, right. With groups, an f32 gradient of 16-bit weights went through f16.
//   - A product of 16-bit matrices with an f32 result is rounded to 16 bits before 9.0. cubeMathType 1 and 3 cut f32 operands to 12 bits of mantissa.
//   - ApplyAdamWV2 adds one to step. MaxPool2dWithIndicesBackward does not read self.
//   - FlashAttentionScore has max and sum in eight lanes, all of which its gradient reads. A query that sees nothing gets the mean of all values, or 0
//     with innerPrecise 2.
//   - Operators that are not deterministic add in another order in each run, unless the switch is on.
//   - An index out of range gives -60000, or nothing is written; the statistics count it.
//   - IndexPutImpl cannot be made repeatable.
//
// The results are tested against PyTorch's, which testdata/ops/cases.py writes down.
//
// # Switches
//
// They are read from the environment when the library is loaded; fakeSet(name, value) of libfakecann.so changes one later.
//
//	FAKE_CANN_SOC         A2 (default), A3, 950, 910, or a name such as Ascend910B4
//	FAKE_CANN_DEVICES     number of devices, 8
//	FAKE_CANN_MEMORY_MIB  memory of each device, 4096
//	FAKE_CANN_DELAY       op:ms[,op:ms…]: how long a task takes at least; an op is "Add", "HcclAllReduce", "memcpy", "memset" or "*"
//	FAKE_CANN_JITTER      1: each task is delayed by 0 to 2 ms, to widen races
//	FAKE_CANN_INJECT      function:n:code[,…]: the n-th call of the function fails with the code and does nothing. n may be * for every call. A
//	                      trailing "@" (function:n:code@) lets the call succeed and its task on the stream fail, which shows at the next synchronisation.
//	                      A function that returns a pointer returns NULL
//	FAKE_CANN_INJECT_IF   NAME=VALUE: errors are injected only into a process with that environment variable ("GOTRAIN_RANK=1")
//	FAKE_CANN_INLINE      1: tasks run in the caller's thread, for stack traces
//	FAKE_CANN_STATS       file to which the statistics are written as JSON, when a device is reset, after each violation and injection, and at exit; %p in it is
//	                      the process id
//	FAKE_CANN_ABORT       1: a violation aborts the process
//	FAKE_CANN_ORDER       1 (default), 0: two tasks on different streams that touch the same memory, one of them writing, with no event or
//	                      synchronisation between them are a violation, whatever ran first; so is freeing memory of which nothing says that it is no
//	                      longer used. It costs time: switch it off to measure
//	FAKE_CANN_SEED        seed of the order of sums that are not deterministic; default: another one in each process
//	FAKE_CANN_INFNAN      0: the device has no INF/NAN mode
//	FAKE_CANN_TIME_SCALE  HCCL_CONNECT_TIMEOUT and HCCL_EXEC_TIMEOUT are multiplied by it; 0.001 turns seconds into milliseconds
//	FAKE_CANN_TWO_RANKS   what two ranks on one device do: refuse (default) or hang, until the connect timeout
//	FAKE_CANN_DESTROY     HcclCommDestroy waits for the others: 1 (default), 0
//	FAKE_CANN_UTIL        what utilisation is reported, in percent; 37
//	FAKE_CANN_DCMI        code that dcmi_init returns, 0
//
// FAKE_CANN_SANITIZE=1 makes the tests of this package run their cases under the address, undefined behaviour and thread sanitizers, too.
// FAKE_CANN_CC names the compiler, FAKE_CANN_DIR a folder that was built before (for machines without one); both are read by Build.
//
// # Status
//
// The behaviour follows documentation and headers of CANN 8.1 and 9.x; nothing was compared with hardware. Where the documents are silent, the fake
// takes the stricter reading.
package fakecann
