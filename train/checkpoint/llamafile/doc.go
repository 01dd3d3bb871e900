// Package llamafile reads and writes the weights of Llamas in the formats that others use.
//
// # In short
//
//	m, err := llamafile.Open("path")                    // a folder or file of any format below; memory-mapped, every size checked
//	m.Config(); m.Names(); m.Shape(name)                // what it is: llama.Config, and the parameters in the order of the network
//	err = m.Read("model.norm.weight", dst)              // float32, converted straight from the mapping
//	report, err := llamafile.Export(ctx, m, llamafile.HF, "out", llamafile.Options{DType: safetensors.BF16})
//
// Whatever the format, a [Model] has Hugging Face's names and Hugging Face's order of rows, as package graph/models/llama has them.
//
// # Formats
//
//   - hf: config.json, and model.safetensors or shards with model.safetensors.index.json. F32, BF16, F16, F64.
//   - gotrain: a folder of a checkpoint. It needs a config.json beside its model.safetensors ([WriteConfig]), or [OpenWith]; [ConfigFromShapes] derives what
//     shapes tell.
//   - meta: tensors called tok_embeddings.weight, layers.0.attention.wq.weight …, and params.json. The pickles that Meta publishes (.pth) are not read, for a pickle is
//     a program. params.json has no context, no ids and no rope factor: they come from the metadata that this package writes, else from the published
//     model of the same shape, else they are 2048, 1 and 2, and 8.
//   - llama2c: .bin of karpathy/llama2.c. Version 0 and 1 (float32) and 2 (groups of int8 with a scale, either placement of the scales) are read, version 0 is written.
//     llama2.c always rotates with theta 10000, without scaling: other models are not exported to it.
//
// # Two orders of rows
//
// Rotary embedding turns pairs of channels of q and k. Hugging Face pairs channel i of a head with i+d/2, Meta and llama2.c pair 2i with 2i+1, and the rows of q_proj and k_proj are
// ordered accordingly. Confusing them gives a model that writes well for some twenty tokens and then degrades. [Permute] goes from Meta's order to Hugging Face's,
// [Unpermute] back; with grouped queries k has as many heads as there are key-value heads. Models convert while they read, exports while they write, and nothing else in
// gotrain knows of a second order. The tests prove it by logits.
//
// # Files that are not what they should be
//
// Sizes are bounded before they are multiplied, and a file must have every tensor of its configuration in its exact shape and no other; the .bin of llama2.c must end exactly
// where its header says. A second copy of a tied embedding must equal the first. What gotrain would compute differently (biases, another activation, other kinds of
// rope scaling) is an error when it is opened, not a wrong number later.
//
// A mapped file must not be cut off while it is open: the system ends a process that reads a page which is gone.
package llamafile
