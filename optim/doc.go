// Package optim updates the weights: SGD, Adam, AdamW, LARS and LAMB as fused device kernels over flat memory, learning-rate
// schedules, gradient clipping, and loss scaling.
//
// # In short
//
//	sched, err := optim.ScheduleConfig{Shape: optim.Cosine, Peak: 0.1, Warmup: 500, Total: 10000}.New()   // LR(step)
//	cfg := optim.Default(optim.SGD, 1e-4)                 // or AdamW, Adam, LARS; change fields; cfg.Validate() names all faults
//	opt, err := optim.New(dev, cfg, []optim.Segment{{     // one segment per gradient bucket
//		Name: "bucket 0", Weight: w, Grad: g, Elems: n,
//		Tensors: []optim.Tensor{{Name: "fc.weight", Off: 0, Elems: 512000, Group: optim.GroupOf(2)}, …},
//	}})
//	scaler, err := optim.NoScaler(10).New()               // or DefaultScaler() for fp16
//
// A step without clipping, each bucket as soon as it is reduced:
//
//	opt.Begin(stream, sched.LR(step), 1/items)            // items: the global count, summed over ranks and micro-batches
//	opt.StepSegment(stream, i)                            // for each bucket that lands; or opt.Step(stream) for all
//
// A step with clipping or loss scaling: the norm of all gradients must be known first.
//
//	opt.Measure(stream); stream.Sync(ctx)
//	n := opt.Norm()
//	skip, err := scaler.Update(n.NonFinite > 0)           // all ranks have reduced gradients, so all ranks agree
//	scale := 1 / (items * scaleOfThisStep)                // read scaler.Scale() before Update
//	norm := n.L2(scale)                                   // of the unscaled gradient: log this one
//	if !skip {
//		opt.Begin(stream, sched.LR(step), scale*optim.ClipCoef(norm, limit))
//		opt.Step(stream)
//	}
//
// These calls fix the order unscale, measure, clip, step, so scaled gradients cannot be clipped by mistake.
//
// # Groups
//
// Each Tensor names a Group by index, with its own learning-rate factor and weight decay. DefaultGroups with GroupOf(dims) is
// the usual choice, no decay on norms and biases. Neighbouring tensors of one group are stepped by one launch, so keeping groups
// together within a bucket is faster, but not required.
//
// # Memory
//
// The state (Config.States: one f32 vector as long as the weights for momentum, two for Adam) has the order and layout of the weights.
// A step allocates nothing. Numbers of a step (learning rate, scale, bias correction) are data in device memory, one short vector
// per group, copied in by Begin.
//
// # Streams
//
// Begin, Measure and the steps only enqueue work. Use one stream for all of them, or order the streams with events. Kernel errors are returned by
// the stream's next Sync.
//
// # Checkpoints
//
// State lists the state of each parameter by name, Count is the number of steps taken; to resume, write the memory and call SetCount. Scaler.State
// is the scaler's. Schedules have no state.
//
// # Numbers
//
// Rules and defaults are PyTorch's (momentum starts as the first gradient, dampening leaves the first alone, eps outside the root,
// decoupled decay before the update); traces of it are checked in under testdata. LARS follows arXiv 1708.03888 with the learning rate
// inside the momentum, as in the paper. LAMB is timm's (arXiv 1904.00962 with the identity for φ), which clips the norm of all gradients to 1: use ClipCoef.
// Its norms are summed tensor by tensor in an order that depends on the tensor alone, so buckets and ranks do not change them.
package optim
