// Package data feeds a training run: sources of samples, the order in which ranks take them, and a loader that reads ahead.
//
// # In short
//
//	src, err := images.NewFolder(dir, images.FolderOptions{Transform: …})   // or NewIDX, NewPacked, data.NewSynthetic, your own Source
//	l, err := data.NewLoader(src, data.Options{Batch: 32, Rank: r, World: w, Seed: 7, Shuffle: true, Tail: data.Pad, From: state})
//	defer l.Close()
//	for {
//		b, err := l.Next(ctx)       // io.EOF after Options.Epochs
//		x, y := b.F32(0), b.I32(1)  // fields in the order of src.Fields(): image f32[N 3 H W], label i32[N]
//		…                           // b.Valid rows count; the label of the others is data.Ignore (-100)
//		state = b.Next              // what a checkpoint stores
//		b.Release()
//	}
//
// l.Sampler().Batches() is the number of batches of an epoch, the same on every rank; l.Stats() has the time the consumer waited and the
// time the workers were busy. For an exact evaluation use Tail: data.Short, Epochs: 1 and Seek(data.State{}) before each one.
// Locate finds bundled data sets by name.
//
// # Sources
//
// A [Source] knows its length, its fields and how to write one sample into memory that the caller owns. It gets a random stream that
// depends on (seed, epoch, sample) only, so augmentation differs between epochs and samples but not between world sizes, workers
// or runs. Sources of pictures are in data/images; [Synthetic] is noise for benchmarks.
//
// # Order
//
// A [Sampler] is a pure function. The order of an epoch is a keyed bijection that is evaluated position by position, without a table; so
// "go to sample 1,000,000 of epoch 37" costs nanoseconds, and a resumed run does not replay what it already saw. A [State] counts
// samples over all ranks: a run may resume with another world size or batch size and goes on in the same order.
//
// What happens at the ragged end of an epoch is chosen by [Tail]; no choice makes ranks run different numbers of batches, because that would hang
// their collectives.
//
// # Loader
//
// A [Loader] owns a fixed ring of batches and a few goroutines. In steady state it allocates nothing itself. Workers run on threads of
// lowered priority (Linux), so that on a machine with few cores decoding takes what computing leaves over; when the consumer has to
// wait, that is everything. Whatever the number of workers, batches come in the same order with the same bytes.
//
// A sample that cannot be read is an error with its place, or is skipped up to Options.SkipBad distinct ones: in training the next good sample
// of the order stands in (so batches stay equal and a repeat of the run does the same), in evaluation the row is left out of the count.
package data
