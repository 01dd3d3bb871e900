// Package data feeds a training run: sources of samples, the order in which ranks read them, and a loader that prefetches.
//
// # In short
//
//	src, err := images.NewFolder(dir, images.FolderOptions{Transform: …})   // or NewIDX, NewPacked, data.NewSynthetic, your own Source
//	l, err := data.NewLoader(src, data.Options{Batch: 32, Rank: r, World: w, Seed: 7, Shuffle: true, Tail: data.Pad, From: state})
//	defer l.Close()
//	for {
//		b, err := l.Next(ctx)       // io.EOF after Options.Epochs
//		x, y := b.F32(0), b.I32(1)  // fields in the order of src.Fields(): image f32[N 3 H W], label i32[N]
//		…                           // the first b.Valid rows count; the others have the label data.Ignore (-100)
//		state = b.Next              // what a checkpoint stores
//		b.Release()
//	}
//
// l.Sampler().Batches() is the number of batches per epoch, the same on every rank; l.Stats() reports how long the consumer waited and how
// long the workers were busy. For an exact evaluation use Tail: data.Short, Epochs: 1 and Seek(data.State{}) before each one.
// Locate finds bundled data sets by name.
//
// # Sources
//
// A [Source] knows its length, its fields and how to write one sample into memory that the caller owns. It receives a random stream that
// depends only on (seed, epoch, sample), so augmentation differs between epochs and samples but not between world sizes, workers
// or runs. Sources of pictures are in data/images; [Synthetic] is noise for benchmarks.
//
// # Order
//
// A [Sampler] is a pure function. The order of an epoch is a keyed bijection that is evaluated position by position, without a table:
// "go to sample 1,000,000 of epoch 37" takes nanoseconds, and a resumed run does not replay what it has already seen. A [State] counts
// samples over all ranks: a run may resume with a different world size or batch size and continues in the same order.
//
// [Tail] chooses what happens to an incomplete batch at the end of an epoch. With every choice all ranks run the same number of batches, because
// otherwise their collectives would hang.
//
// # Loader
//
// A [Loader] owns a fixed ring of batches and a few goroutines. In steady state it allocates nothing itself. Workers run on threads with
// lowered priority (Linux), so that on a machine with few cores decoding uses only the time that computing leaves; when the consumer has to
// wait, that is all of it. Batches come in the same order with the same bytes, regardless of the number of workers.
//
// A sample that cannot be read is an error that names it, unless Options.SkipBad allows that many distinct bad samples to be skipped. In training the
// next good sample in order then replaces it (so batches stay full and a repeated run does the same); in evaluation the row is not counted.
package data
