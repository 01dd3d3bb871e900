// Package graph is a DSL for models, and the compiler that turns them into programs for a device.
//
// A [Builder] holds one Gorgonia graph (gorgonia.org/gorgonia, an ExprGraph) for one batch shape, either for training or for evaluation. Its
// methods add calls of the op kinds in package op and return Gorgonia nodes:
//
//	b := graph.New()                                   // graph.New(graph.ForEval()) for evaluation
//	x := b.Input("image", npu.F32, 16, 784)            // set by the caller before each run
//	y := b.Input("label", npu.I32, 16)
//	w := b.Param("w", npu.Shape{10, 784}, graph.LeCunUniform())
//	loss, count := b.CrossEntropy(b.Linear(x, w, nil), y)
//	b.Loss(loss)                                       // a sum; the trainer divides by the count of all ranks
//	b.Output("count", count)
//	if err := b.Grad(); err != nil { … }               // adds the backward pass
//	p, err := graph.Compile(b, device, graph.Options{})
//
// Layers with names and initialisers are in package nn, complete networks under models. Layouts are NCHW for activations and OIHW for weights; devices
// use their own layouts internally.
//
// # Errors
//
// Errors are sticky: the first one is kept, with the file and line of the caller, the scope and the cause; later calls do nothing and return a
// placeholder. Check [Builder.Err] once, or let Grad, Lower or Compile return it.
//
//	graph: model.go:31: layer1.0.conv1: conv2d: x [16 3 32 32] has 3 channels, w [64 4 3 3] wants 4 in 1 group(s)
//
// # Names
//
// [Builder.In] opens a scope. Parameters and states are named by the path of scopes, separated by dots: layer1.0.conv1.weight. Inputs and outputs have
// global names. Names must be unique.
//
// # Gradients
//
// [Builder.Loss] takes an f32 scalar, usually a sum over items, and multiplies it by the input [LossScaleInput], so the caller chooses
// the scale of all gradients at run time (1 in the simplest case). Grad differentiates with respect to every parameter that is not frozen.
// It is an error if the loss does not depend on a parameter (see [AllowUnreached]), and if it depends on one only through something that
// has no gradient: use [Builder.StopGrad] if that is intended. Gradients are float32.
//
// # Precision
//
// A graph is written in float32. Mixed precision is an option of Compile; each kind declares which of its arguments follow it (kind.Class).
//
// # Raw Gorgonia ops
//
// Nodes are Gorgonia's, so its functions can be mixed in, through [Builder.Raw]. Elementwise arithmetic, sums, maxima, matrix products, softmax, reshape,
// transpose, concatenation and constants become kinds of package op. Any other op runs on the host with a copy each way, and a warning (see [WarnTo]) names it
// once. Gorgonia's dropout, batch norm, average pooling and random nodes are rejected: they are incorrect, or merged although they differ.
//
// Known hazards of Gorgonia graphs are excluded by construction; traps_test.go tests each:
//
//   - nodes with equal hashes are silently merged: each call has a number in its hash, each result is compared with the requested one, a collision is
//     resolved with another number, and the sums that Grad inserts are compared with the gradients that they must add;
//   - inputs with equal names are merged: names must be unique;
//   - a second Grad returns the gradients of the first: it is an error;
//   - an op has one output: further outputs are picks of a node, which cost nothing;
//   - one node may be the gradient of several parameters: [plan.Trained] lists them all;
//   - a rule that gives no gradient, or one of another shape, is an error that names the kind, not a crash;
//   - building modifies process-wide state: it happens under one lock, so models may be built on any goroutine.
//
// # Lowering
//
// [Builder.Lower] returns the plain-data graph of package plan: calls in the order of creation, pruned to what outputs and gradients need. It depends
// only on the builder code, so all ranks of a job have the same graph.
package graph
