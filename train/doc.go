// Package train trains: one loop over a device, a model, data, an optimizer and the other ranks.
//
// # In short
//
//	t, err := train.New(
//		train.WithModel(model),                                    // a function that builds the network and its loss
//		train.WithData(source, 32), train.WithEval(held, -1),      // rows of a micro-batch; evaluate after every epoch
//		train.WithEpochs(10),
//		train.WithOptimizer(optim.Default(optim.SGD, 1e-4)), train.WithLR(0.1),
//		train.WithCheckpoints("runs/x", 500),                      // save every 500 steps, go on from there after a crash
//		train.WithSinks(telemetry.NewConsole(telemetry.Stdout(), telemetry.Identity{World: 1}, telemetry.ConsoleOptions{})),
//	)
//	res, err := t.Run(ctx)
//
// Import the devices that the program shall have for their side effect: npu/cpu, npu/ref. With several ranks each process makes a communicator (ddp/comm/shm) and gives it
// to WithComm; everything else stays the same. Config has every setting with its default.
//
// # Groups of parameters
//
//	train.WithGroups(
//		train.ParamGroup{Name: "stem", Match: func(p string) bool { return strings.HasPrefix(p, "conv1.") }, Frozen: true},
//		train.ParamGroup{Name: "head", LRFactor: 10}, // of parameters that the model declares with graph.Group("head")
//	)
//
// gives parameters a learning rate or decay of their own, or freezes them: what is frozen has no backward pass, no optimizer state and no part in the reductions and in the
// norm that is limited, and checkpoints hold it. A group of the model that the trainer does not have, and one of the trainer without parameters, are errors.
//
// # What holds
//
//   - A [Model] returns sums. They are divided once, by the count over all micro-batches and ranks, so the loss does not depend on how a global batch is split.
//   - The same seed, settings and number of ranks give the same bits, also when the run was stopped and resumed in between. With another number of ranks the order of samples is
//     the same and losses agree to rounding.
//   - All ranks run the same number of steps and take the same branch: they agree in one small reduce per step on numbers that are not finite, on stopping and on errors.
//   - A checkpoint comes before the evaluation of its step: an evaluation that fails costs no training, and the next run begins with it.
//   - Evaluation counts every sample once ("items" says how many), with running statistics averaged over ranks.
//   - [Trainer.Stop] may be called from anywhere, also a signal handler; Run then saves and returns a [StopError], whose exit code is 75 where the
//     same command resumes. [Trainer.Abandon] does not wait for the step under way, and saves the one before.
//   - Whatever a rank fails at, the others end too, with an error. Weights that are not finite are never saved.
//
// # Where to read
//
// loop.go is the loop. step.go is one step, in three parts: microbatch.go, vote.go, update.go. evaluate.go is one evaluation, stop.go how a run ends on
// request. State leaves in save.go and enters in initialise.go and resume.go; statistics.go has what differs between ranks. trainer.go opens everything, with
// the help of engine.go (buckets, and what ranks must agree on) and bind.go (memory). summary.go plans a run without running it.
package train
