// Package checkpoint keeps the state of a training run on disk so that no crash, power failure or full disk loses what was saved.
//
// # Overview
//
//	store := checkpoint.New(checkpoint.OS{}, "runs/x/checkpoints", 3)      // keeps the newest 3
//	saved, err := store.Save(ctx, checkpoint.Content{State: state, Files: []checkpoint.TensorFile{
//		{Name: checkpoint.ModelFile, Tensors: tensors, Data: func(t safetensors.Tensor, w io.Writer) error { … }},
//		{Name: checkpoint.OptimizerFile, …},
//	}})                                                                    // streams, one tensor at a time
//	ck, report, err := store.Latest(ctx)                                  // the newest that verifies; errors.Is(err, ErrNone): a new run
//	log.Info(report.String())                                             // reports whether it fell back, and why
//	ck, err := store.Load(ctx, "step-00001000")                           // a specific one
//	err = ck.File(checkpoint.ModelFile).Read("conv1.weight", dst)         // raw little-endian bytes
//	infos, err := store.List(ctx)                                         // newest first
//
// # Layout on disk
//
//	checkpoints/
//	  step-00001000/
//	    model.safetensors      weights in f32, running statistics
//	    optimizer.safetensors  momentum and moments, by parameter name
//	    state.json             step, epoch, position in the data, scaler, recipe: see State
//	    MANIFEST.json          size and SHA-256 of each file, and a serial number; written last
//	    evaluation.json        result of an evaluation of these weights; added after the commit, may be missing
//	  latest                   the name of the newest, for scripts; the loader does not trust it
//
// Tensors are stored by parameter name in plain row-major layout, independent of ranks, buckets and kernels, so a checkpoint can be resumed on
// another number of ranks and read by any tool that reads safetensors.
//
// # Guarantees
//
// Save writes to step-N.tmp, syncs every file, writes the manifest, syncs the directory, renames it, and syncs the parent. Whenever the machine
// stops, Latest finds the old checkpoint or the new one, complete; a test stops it at every single operation. Only then are older checkpoints rotated
// out, and only while enough good ones remain: one found damaged does not count. One that the system cannot read, for example because of EIO, is not
// treated as damaged: reads are retried, and what cannot be read stays.
//
// An error of Save leaves the older checkpoints untouched, and training can continue. A full disk is detected before the first byte if the system
// reports free space, and is errors.Is(err, ErrNoSpace) in any case. Leftovers of a crash (step-N.tmp) are removed by the next Save.
//
// "Newest" is the checkpoint committed last (by serial number), not the one with the highest step: a run that goes back to step 1000 and trains on is
// not thrown forward to the abandoned step 2000. A step that is saved again goes to step-N-2, because a directory cannot be replaced atomically on
// every system.
//
// One process writes to a store at a time: package dirlock ensures it, and Guard stops a process that lost its directory. Loading first verifies
// every byte against the manifest.
package checkpoint
