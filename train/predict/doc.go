// Package predict runs a trained network on inputs that come one by one, from many goroutines: in a server, in a batch job, behind a command.
//
//	import (
//		_ "github.com/gotrain/gotrain/graph/models/resnet" // the families of networks to include in the binary
//		_ "github.com/gotrain/gotrain/npu/cpu"             // and the devices
//	)
//
//	m, err := predict.Open("runs/flowers")                          // a checkpoint, a folder of several, or of a run: the newest good one
//	defer m.Close()
//	results, err := m.Predict(ctx, predict.Bytes(jpeg), predict.File("rose.jpg"), predict.Image(img))
//	for _, r := range results {
//		fmt.Println(r.Top(5), r.Err)                                // r.Err: this picture is broken, the others are fine
//	}
//
// A checkpoint is enough: it holds the network, the names of the classes, how a picture becomes an input, and the compute type. [Model.Network] returns
// them. A network of your own is passed with [WithModel]: the model function that trained it, which sets train.Outputs.Logits. Checkpoints that older
// versions of gotrain wrote hold no such description; then Open names the options that are missing.
//
// # Batches
//
// Inputs that wait are computed together. Nothing waits for company: with an idle device a single input is computed at once, and whatever arrives meanwhile
// makes up the next batch. Batches have few sizes (1, 2, 4, … up to [WithBatch]); each is compiled once, when it is first needed, and a batch between two
// sizes is filled up with rows that do not count, or split. So the logits of a picture may differ in the last bits from one call to the next, because a device
// rounds differently for another number of rows; they do not depend on what the other rows are.
//
// Batch normalisations become part of the convolutions before them when the model is opened, and convolutions use the algorithms of the training, or the
// fastest ones of this machine ([WithConvAlgorithm]).
//
// A call takes room for each input before it decodes it, and there is room for two batches: a call with a million files needs no more memory than one with a
// hundred, and a server under load makes its clients wait rather than grow.
//
// # Errors
//
// What is wrong with one input is in [Result.Err]. Predict returns an error where no result is worth having: the context has ended, the device
// fails, or the model is closed ([ErrClosed]). [Model.Close] lets the inputs that wait for the device be computed, ends all others with ErrClosed, and returns
// when no call is left.
package predict
