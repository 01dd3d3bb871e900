// Package kern holds the short C kernels of the CPU device: what oneDNN lacks, or does slower than memory allows.
//
// An op whose layouts are concrete is prepared once, bound to memory, and then run by one C call that allocates nothing:
//
//	call, ok := kern.Prepare(op)          // !ok: no kernel for this op, these dtypes or layouts
//	cmd, err := call.Bind(args, workspace, 0)  // addresses of inputs then outputs; call.Workspace() bytes, 64-byte aligned
//	err = cmd.Run(threads)
//
// A caller with its own C loop takes [Cmd.Command] instead: a C function int fn(void *self, void *stream) and its self; after a status that is
// not zero, [Cmd.Err] says what happened. The number of threads given to Bind then counts; 0 means what omp_get_max_threads says
// on the calling thread, so that kernels use the thread team that oneDNN has there. The memory must not be Go's, and must live as long
// as the Cmd, which frees itself when it is garbage.
//
// # Layouts and types
//
// Activations are F32 or BF16 (arithmetic is float32; rounding to nearest even), all of one op alike where kinds.go says "act". Layouts of [N C H W]: Plain, [NHWC] (channels innermost) and
// [NChw16c] (blocks of 16 channels; C must be a multiple). Elementwise ops take any of them if all arguments agree.
// Ops that move or broadcast elements take Plain only, but for concat, which takes any layout that all share. Copies from one layout to another, pooling
// windows, convolutions and products of matrices are oneDNN's, but for a·bᵀ with at most eight rows in a, as in generation: those read b once, as fast as memory gives it.
//
// The kinds of language models take Plain only. Kernels of rope that turn by the same angles share one table of cosines and sines; positions beyond it are
// computed when they come. An id outside an embedding's table fails the command before anything is written, with the place of the id.
//
// batchnorm_bwd knows one more attribute than kinds.go, own_y: the promise that y was made by this package's batchnorm from the same x, gamma, beta, mean
// and rstd, without add. The mask is then computed from x, and y is not read, which saves two of seven passes over memory.
//
// # Numbers
//
// Attention keeps nothing of the size queries × keys: its workspace is that of keys and values of one key head, for each thread ([Call.ForThreads]).
// Its probabilities are rounded to bfloat16 before they meet the values where AMX is used, else they stay float32.
//
// Results do not depend on the number of threads, nor on timing: what is summed together is fixed by the shape, partial sums are kept apart
// and merged in order in float64. They do depend, in the last bits, on the processor's vector length.
//
// # Files
//
// An op family is a name with up to five files: NAME.go makes the Call, NAME.c lists what is compiled, NAME.h declares what its C files share. Two are
// templates, headers because the go command looks for changes in no other files: NAME.per_isa.h is compiled once for each instruction set (isa.h includes
// it), NAME.per_type.h once more for each element type (types.h). vec.h has their vectors, type.h the names for the element type. flags.h has the flags of
// all kernels, for C and Go. attention.c calls attention_amx.c, and both attention_plan.c.
//
// # Processors
//
// Every kernel is compiled for three instruction sets (baseline, AVX2 with FMA, AVX-512 with BF16 conversion) in one binary, and the best that the
// processor has is chosen at run time; other processors, arm64 among them, use the baseline, which is written with the compiler's portable vectors.
// Attention of bfloat16 also has a form for AMX, the matrix unit of some Intel processors; its [Call.Impl] ends in "+amx". Without it, it is computed in float32.
// [EnvISA] limits the choice (isa.go). A command holds the function of its instruction set, so nothing is decided when it runs.
// Threads come from libgomp where it can be loaded, else everything runs on the calling thread.
package kern
