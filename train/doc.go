// Package train is the trainer: one loop over a device, a model, data, an optimizer and the other ranks.
//
// # Overview
//
//	t, err := train.New(
//		train.WithModel(model),                                    // a function that builds the network and its loss
//		train.WithData(source, 32), train.WithEval(held, -1),      // rows of a micro-batch; evaluate after every epoch
//		train.WithEpochs(10),
//		train.WithOptimizer(optim.Default(optim.SGD, 1e-4)), train.WithLR(0.1),
//		train.WithCheckpoints("runs/x", 500),                      // save every 500 steps, resume from there after a crash
//		train.WithSinks(telemetry.NewConsole(telemetry.Stdout(), telemetry.Identity{World: 1}, telemetry.ConsoleOptions{})),
//	)
//	res, err := t.Run(ctx)
//
// Import each device package you need, npu/cpu or npu/ref, for its side effect. With several ranks, each process makes a communicator (ddp/comm/shm)
// and passes it to WithComm; the rest stays the same. Config documents every setting and its default.
//
// # Metrics
//
// [Outputs].Metrics are means over the items, Sums are totals; both may be tensors. Derived are functions of them, computed on the host:
//
//	Sums:    map[string]*graph.Node{"confusion": b.ConfusionMatrix(logits, in["label"])},
//	Derived: map[string]func(train.Values) train.Tensor{"right": func(v train.Values) train.Tensor {
//		return train.Scalar(v["confusion"].At(0, 0) + v["confusion"].At(1, 1))
//	}},
//
// [StepView].Metric, [Result].Values and [Trainer].Values have them all; [Result].Eval and [Monitor] those that are numbers.
//
// # Groups of parameters
//
//	train.WithGroups(
//		train.ParamGroup{Name: "stem", Match: func(p string) bool { return strings.HasPrefix(p, "conv1.") }, Frozen: true},
//		train.ParamGroup{Name: "head", LRFactor: 10}, // parameters that the model declares with graph.Group("head")
//	)
//
// gives parameters their own learning rate or decay, or freezes them. Frozen parameters have no backward pass and no optimizer state, and take no
// part in the reductions or in the gradient norm; checkpoints still hold them. It is an error if the model names a group that the trainer lacks, or
// if a group of the trainer has no parameters.
//
// # Guarantees
//
//   - A [Model] returns sums. They are divided once, by the count over all micro-batches and ranks, so the loss does not depend on how a global batch
//     is split.
//   - The same seed, settings and number of ranks give the same bits, even if the run was stopped and resumed in between. With another number of
//     ranks the order of samples is the same and losses agree to rounding.
//   - All ranks run the same number of steps and take the same branch: one small reduction per step makes them agree on non-finite numbers, on
//     stopping and on errors.
//   - A checkpoint is written before the evaluation of its step: a failed evaluation loses no training, and the next run begins with it.
//   - Evaluation counts every sample once ("items" is the count), with running statistics averaged over ranks.
//   - [Trainer.Stop] may be called from anywhere, including a signal handler; Run then saves and returns a [StopError], whose exit code is 75 if the
//     same command resumes. [Trainer.Abandon] does not wait for the current step, and saves the previous one.
//   - If one rank fails, for any reason, the others end too, with an error. Non-finite weights are never saved.
//
// # Reading the code
// loop.go is the loop. step.go is one step, in three parts: microbatch.go, vote.go, update.go. evaluate.go is one evaluation; metric.go and results.go are
// what both report. stop.go handles stop requests. save.go writes the state; initialise.go and resume.go load it; statistics.go handles the statistics that
// differ between ranks. trainer.go opens everything, with the help of engine.go (buckets, and what ranks must agree on) and bind.go (memory). summary.go
// plans a run without running it.
package train
