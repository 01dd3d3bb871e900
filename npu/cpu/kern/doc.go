// Package kern holds the short C kernels of the CPU device: ops that oneDNN lacks, or does slower than memory allows.
//
// An op with concrete layouts is prepared once, bound to memory, and then run by one C call that allocates nothing:
//
//	call, ok := kern.Prepare(op)          // !ok: no kernel for this op, these dtypes or layouts
//	cmd, err := call.Bind(args, workspace, 0)  // addresses of inputs then outputs; call.Workspace() bytes, 64-byte aligned
//	err = cmd.Run(threads)
//
// A caller with its own C loop uses [Cmd.Command] instead: a C function int fn(void *self, void *stream) and its self. After a non-zero status, [Cmd.Err]
// returns the error. The number of threads given to Bind then applies; 0 means omp_get_max_threads() of the calling thread, so that kernels use the same
// thread team as oneDNN. The memory must not be Go's, and must live as long as the Cmd, which is freed by the garbage collector.
//
// # Layouts and types
//
// Activations are F32 or BF16 (arithmetic is float32, rounding to nearest even), and have the same type throughout an op where kinds.go says "act". Layouts
// of [N C H W]: Plain, [NHWC] (channels innermost), [NChw16c] and [NChw8c] (blocks of channels; C must be a multiple). Elementwise ops accept any if all
// arguments agree. Ops that move or broadcast elements accept Plain only, except concat, which accepts any common layout. oneDNN does conversions between
// layouts, pooling windows, convolutions and matrix products, except a·bᵀ with at most eight rows in a, as in generation: those kernels read b once, at the
// speed of memory.
//
// The kinds of language models accept Plain only. Rope kernels with the same angles share one table of cosines and sines; positions beyond it are computed
// when needed. An id outside an embedding's table fails the command before anything is written, and the error names the position of the id.
//
// Pack (pack.go) is the exception among conversions: weights from float32 to blocks of bf16.
//
// Pairs (pairs.go), a weight gradient of bf16 convolutions, is made by the caller too: it has one order of weights.
//
// Winograd's convolution (winograd.go) has only its transforms here. The matrix products between them are commands of the caller, which the kernel runs in the
// threads that do the transforms.
//
// batchnorm_bwd has one more attribute than in kinds.go, own_y: the promise that y was made by this package's batchnorm from the same x, gamma, beta, mean
// and rstd, without add. The mask is then computed from x, and y is not read, which saves two of seven passes over memory.
//
// # Numbers
//
// Attention stores nothing of size queries × keys: its workspace holds the keys and values of one key head per thread ([Call.ForThreads]). With AMX its
// probabilities are rounded to bfloat16 before they are multiplied by the values; otherwise they stay float32.
//
// Results do not depend on the number of threads or on timing: the shape determines what is summed together, and partial sums are kept separate and merged
// in order in float64. The last bits do depend on the processor's vector length.
//
// # Files
//
// An op family is a name with up to five files. NAME.go makes the Call, NAME.c lists what is compiled, NAME.h declares what its C files share. Two are
// templates, with the suffix .h because the go command tracks changes in no other files: NAME.per_isa.h is compiled once per instruction set (isa.h includes
// it), NAME.per_type.h also once per element type (types.h). vec.h has their vectors, type.h the names for the element type. flags.h has the flags of all
// kernels, for C and Go. attention.c calls attention_amx.c, and both call attention_plan.c.
//
// # Processors
//
// Every kernel is compiled for three instruction sets (baseline, AVX2 with FMA, AVX-512 with BF16 conversion) in one binary, and the best one that the
// processor supports is selected at run time. Other processors, including arm64, use the baseline, which is written with the compiler's portable vectors.
// Attention in bfloat16 also has a form for AMX, the matrix unit of some Intel processors; its [Call.Impl] ends in "+amx". Without AMX it is computed in
// float32. [EnvISA] limits the choice (isa.go). A command holds the function of its instruction set, so nothing is decided when it runs. Threads come from
// libgomp if it can be loaded, and for long runs of kernels from a [Team]; otherwise everything runs on the calling thread.
package kern
