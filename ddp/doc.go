// Package ddp keeps the replicas of a data-parallel job equal: it reduces gradients over ranks while the backward pass is still
// computing, and lets ranks agree on every decision.
//
// The package is independent of graphs and optimizers. It takes a list of parameters in the order in which their gradients become ready, and
// a Communicator, and provides memory for gradients. One step of a custom loop:
//
//	eng, err := ddp.New(ctx, ddp.Config{Comm: c, Params: params})
//	for step := range steps {
//		for m := range micro { // micro-batches
//			last := m == micro-1
//			eng.Begin(step, last)
//			for i := range params { // backward, in ready order
//				addGradient(eng.GradF32(i)) // earlier micro-batches only add
//				eng.Ready(i)                // the last one starts the reduction of full buckets
//			}
//		}
//		stats, err := eng.Wait(ctx)
//		v, err := eng.Agree(ctx, ddp.Vote{Count: n, LossSum: loss})
//		update(weights, gradients, 1/v.Count) // sum of all gradients ÷ global count
//	}
//
// # What is summed, what is divided
//
// A bucket holds the plain sum over ranks. Let every micro-batch add the gradient of its loss *sum* and divide once by the global
// Count that Agree returns (as the optimizer's grad scale, which avoids a separate pass over memory). The result is the gradient of one
// big batch for any number of ranks and micro-batches, even if their counts differ. A mean of means does not.
//
// # Buckets
//
// Sub-package bucket cuts the list into buckets and explains why the first and the last are small. Gradients live in the buckets (Grad):
// there is no copy and no second set. Optimizer kernels run over bucket.Run, one per group and bucket; OnBucket tells when
// a bucket holds its sum, so that the optimizer can start before the last bucket has landed, if no global norm is needed.
//
// # Note [order of reduction]
//
// Ranks must issue collectives in the same order. Buckets are therefore reduced in plan order, regardless of the order of the Ready calls: a bucket
// that is full early waits for those before it. Sub-package schedule decides this order, also for codecs with several collectives per bucket. Agree,
// Broadcast and CheckState fail while buckets are in flight.
//
// # Codecs
//
// Config.Codec makes gradients smaller on the wire. After Wait, Settle tells it whether the step was applied: what it keeps from step to step (residuals)
// is committed, or dropped with a skipped step. A scaled loss is announced by LossScale.
//
// # Threads
//
// Ready, ReadyBucket and Begin never block. An engine has two goroutines, and two more for each further group of a codec: one waits for device events
// (unless the transport does), encodes and issues collectives, one waits for completion and decodes. OnBucket is called from one of them. The compute
// thread is not involved. Begin, Wait and Agree belong to one goroutine; Ready and ReadyBucket may be called from any, but before Wait.
//
// # Errors
//
// A collective waits up to Config.Timeout for a silent rank, and up to Config.LongWork for one that reports long work
// (comm.Steady): a rank that writes a checkpoint while the others wait should report it.
//
// The first error breaks the engine: every later call returns it, and Communicator.Abort notifies the peers, so that they fail within
// about a second instead of waiting. Errors name rank, step, bucket and parameters (*StepError) and wrap the transport's, which names the peer.
package ddp
