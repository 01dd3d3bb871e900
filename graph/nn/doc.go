// Package nn provides layers over graph.Builder: named groups of parameters with the ops that use them.
//
// A [Layer] is applied to a builder, a name and a tensor. Its parameters are named below that name, as in PyTorch: weight and bias,
// and for batch norm also running_mean and running_var. Biases and the parameters of norms are exempt from weight decay.
// Initialisers default to PyTorch's.
//
//	x = nn.Conv2D{Out: 64, Kernel: 7, Stride: 2, Pad: 3}.Apply(b, "conv1", x)
//	x = b.Relu(nn.BatchNorm{}.Apply(b, "bn1", x))
//
// Language models start with [Embedding]; [RMSNorm], [LayerNorm] and [Linear] work on the last axis. [MultiHeadAttention] is self-attention with its
// projections; attention itself has no parameters: see Builder.Attention.
//
// Layers are plain values; [Sequential] chains and numbers them. A custom layer is a type with an Apply method, or a
// [Func] (without parameters) or [Named] (with parameters) around a function. Errors, such as a wrong number of channels, are sticky errors of the
// builder and name the layer.
package nn
