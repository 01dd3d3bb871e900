// Package nn has layers over graph.Builder: things with parameters, under one name.
//
// A [Layer] is applied to a builder, a name and a tensor. Its parameters are called by that name, as PyTorch calls them: weight and bias,
// and for batch norm also running_mean and running_var. Biases and the parameters of norms are marked as exempt from weight decay.
// Initialisers default to PyTorch's.
//
//	x = nn.Conv2D{Out: 64, Kernel: 7, Stride: 2, Pad: 3}.Apply(b, "conv1", x)
//	x = b.Relu(nn.BatchNorm{}.Apply(b, "bn1", x))
//
// Tokens begin with [Embedding]; [RMSNorm] and [Linear] work on the last axis. Attention has no layer, as it has no parameters: see Builder.Attention.
//
// Layers are plain values; [Sequential] strings them together and numbers them. A custom layer is a type with an Apply method, or a
// [Func] (without parameters) or [Named] (with) around a function. Errors, such as a wrong number of channels, are the builder's sticky
// ones and name the layer.
package nn
