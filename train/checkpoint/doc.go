// Package checkpoint keeps the state of a training on disk so that no crash, power cut or full disk loses what was saved.
//
// # In short
//
//	store := checkpoint.New(checkpoint.OS{}, "runs/x/checkpoints", 3)      // keeps the newest 3
//	saved, err := store.Save(ctx, checkpoint.Content{State: state, Files: []checkpoint.TensorFile{
//		{Name: checkpoint.ModelFile, Tensors: tensors, Data: func(t safetensors.Tensor, w io.Writer) error { … }},
//		{Name: checkpoint.OptimizerFile, …},
//	}})                                                                    // streams, one tensor at a time
//	ck, report, err := store.Latest(ctx)                                  // the newest that verifies; errors.Is(err, ErrNone): a new run
//	log.Info(report.String())                                             // says when it fell back, and why
//	ck, err := store.Load(ctx, "step-00001000")                           // a certain one
//	err = ck.File(checkpoint.ModelFile).Read("conv1.weight", dst)         // raw little-endian bytes
//	infos, err := store.List(ctx)                                         // newest first
//
// # On disk
//
//	checkpoints/
//	  step-00001000/
//	    model.safetensors      weights in f32, running statistics
//	    optimizer.safetensors  momentum and moments, by parameter name
//	    state.json             step, epoch, place in the data, scaler, recipe: see State
//	    MANIFEST.json          size and SHA-256 of each file, and a serial number; written last
//	    evaluation.json        what an evaluation of these weights came to; added after the commit, may be missing
//	  latest                   the name of the newest, for scripts; the loader does not trust it
//
// Tensors are stored by parameter name in plain row-major layout, whatever ranks, buckets and kernels looked like, so a checkpoint can be continued
// on another number of ranks and read by any tool that knows safetensors.
//
// # What is promised
//
// Save writes to step-N.tmp, syncs every file, writes the manifest, syncs the directory, renames it, syncs the parent. Whenever the machine stops,
// Latest finds the old checkpoint or the new one, complete; a test stops it at every single operation. Only after that are older ones rotated out, and only
// while enough good ones remain: one that was found damaged does not count. One that the
// system would not give, such as after EIO, is not damaged: reading is tried again, and what cannot be read stays.
//
// An error of Save leaves the older checkpoints as they were, and the training can go on; a full disk is known before the first byte where
// the system tells the free space, and is errors.Is(err, ErrNoSpace) in any case. Leftovers of a crash (step-N.tmp) are removed by the next Save.
//
// "Newest" is the one that was committed last (the serial number), not the one with the highest step: who goes back to step 1000 and trains on from
// there is not thrown back to the abandoned step 2000. A step that is saved again goes to step-N-2, because replacing a directory cannot be done
// in one atomic operation everywhere.
//
// One process writes to a store at a time: package dirlock makes sure of it, and Guard stops one that lost its directory. Loading verifies every byte against the manifest first.
package checkpoint
