// Package resnet builds residual networks (He et al., arXiv 1512.03385) in the DSL of package graph: 18, 34, 50, 101 and 152 layers, and any other
// number of blocks.
//
// The default is torchvision's network, "v1.5": the stride of a bottleneck is in its 3x3 convolution. [Config.V1] puts it in the first 1x1, as in the
// paper. Parameters have torchvision's names and order (conv1.weight, bn1.weight, layer1.0.conv1.weight, …, fc.bias), so its weights load unchanged.
// Convolutions are initialised with Kaiming normal over the fan-out, norms with weight 1 and bias 0, the classifier uniformly in ±1/√fan_in.
//
// Parameters with 1000 classes: 11 689 512 (18), 21 797 672 (34), 25 557 032 (50), 44 549 160 (101), 60 192 808 (152).
//
// For images of about 32 pixels set [Config.SmallStem]. For large batches [Config.ZeroInitLast] lets each block start as the identity
// (Goyal et al., arXiv 1706.02677). Weights from Keras require V1 and Eps 1e-3.
package resnet
