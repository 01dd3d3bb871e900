// Package llamafile reads and writes Llama weights in common external formats.
//
// # Overview
//
//	m, err := llamafile.Open("path")                    // a folder or file of any format below; memory-mapped, every size checked
//	m.Config(); m.Names(); m.Shape(name)                // the llama.Config, and the parameters in the order of the network
//	err = m.Read("model.norm.weight", dst)              // float32, converted straight from the mapping
//	report, err := llamafile.Export(ctx, m, llamafile.HF, "out", llamafile.Options{DType: safetensors.BF16})
//
// Whatever the format, a [Model] has Hugging Face's names and Hugging Face's order of rows, as in package graph/models/llama.
//
// # Formats
//
//   - hf: config.json, and model.safetensors or shards with model.safetensors.index.json. F32, BF16, F16, F64.
//   - gotrain: the folder of a checkpoint. It needs a config.json next to its model.safetensors ([WriteConfig]), or [OpenWith]; [ConfigFromShapes]
//     derives what the shapes determine.
//   - meta: tensors named tok_embeddings.weight, layers.0.attention.wq.weight …, and params.json. The pickles that Meta publishes (.pth) are not
//     read, because a pickle is a program. params.json has no context, no ids and no rope factor: they come from the metadata that this package
//     writes, else from the published model of the same shape, else they are 2048, 1 and 2, and 8.
//   - llama2c: .bin files of karpathy/llama2.c. Versions 0 and 1 (float32) and 2 (groups of int8 with a scale, either placement of the scales) are
//     read, version 0 is written. llama2.c always rotates with theta 10000, without scaling: other models cannot be exported to it.
//
// # Two orders of rows
//
// Rotary embedding rotates pairs of channels of q and k. Hugging Face pairs channel i of a head with i+d/2, Meta and llama2.c pair 2i with 2i+1, and
// the rows of q_proj and k_proj are ordered accordingly. Confusing the two gives a model that generates well for some twenty tokens and then
// degrades. [Permute] converts from Meta's order to Hugging Face's, [Unpermute] back; with grouped queries, k has as many heads as there are
// key-value heads. Models convert as they read, exports as they write; the rest of gotrain knows only one order. Tests compare logits to verify this.
//
// # Damaged and unsupported files
//
// Sizes are bounded before they are multiplied, and a file must have every tensor of its configuration in its exact shape and no others; a llama2.c
// .bin must end exactly where its header says. A second copy of a tied embedding must equal the first. A setting that gotrain does not implement
// (biases, another activation, other kinds of rope scaling) is an error on opening, not a wrong number later.
//
// A mapped file must not be truncated while it is open: the system kills a process that reads a page that is gone.
package llamafile
