// Package plan turns a lowered model into a static execution plan: which kernels run, in which order and layout, and
// where every tensor lives. It is pure: values in, values out; no device is opened, no memory is touched, no Gorgonia type is seen. What it must
// know of a device it asks through the small interface Target.
//
// # Stages
//
//	Graph    what a model was lowered to (graph.Builder.Lower): plain calls on plain float32 tensors
//	Prune    drops unused calls
//	Recompute (where asked for) keeps of each block what others read, and puts copies of the rest before the
//	         backward pass that needs it
//	Fold     (where asked for, for predictions) makes batchnorm with fixed statistics part of the convolution before it
//	Fuse     merges calls where the target has a kernel for the whole: batchnorm+relu, batchnorm+add+relu, their
//	         backward passes, gradient sums into the op that reads them, conv+relu, add+relu; residual sums into
//	         rmsnorm and its gradient, loss and gradients of linear_cross_entropy
//	Mixed    moves activations to bfloat16 or float16 and leaves parameters, statistics, losses and reductions in float32
//	Layout   gives every value a memory layout, inserts as few conversions as possible, and lets parameters, their
//	         gradients and optimizer state live in the layout that the weight-gradient kernel writes
//	Hoist    (weights that do not change) brings to the front what is made of weights alone, to be run once
//	Memory   liveness, in-place reuse, offsets in one arena, in which workspaces of kernels lie too once their sizes are known (Plan.Place)
//	Fit      (with a limit of memory, after Build) makes cheap results of the forward pass again in the backward pass, as few as the limit takes
//
// Build runs all of them and returns a Plan, which is what an executor binds to kernels and what `gotrain plan` prints.
//
// # Determinism
//
// Every stage is a function of its input alone: no map order, no clock, no random choice. Ranks that start
// from the same model on the same kind of device get the same plan, and Plan.Fingerprint lets them check that they did.
package plan
