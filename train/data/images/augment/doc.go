// Package augment has the random changes of pictures that the literature trains with: RandAugment, TrivialAugment, colour jitter, random erasing, mixup and
// cutmix.
//
//	opt := images.Options{
//		Transform: images.RandomResizedCrop{Width: 224, Height: 224, Flip: 0.5},
//		Augment: augment.Pipeline{
//			Policy: augment.RandAugment{Magnitude: 7, Std: 0.5, Prob: 0.5}, // timm's rand-m7-mstd0.5-inc1
//			Erase:  augment.Erase{Prob: 0.25, Noise: true},
//		},
//		Norm: images.ImageNet,
//	}
//	src, err := images.NewFolder("imagenet/train", opt)
//	mixed, err := augment.NewMixed(src, augment.Mix{Mixup: 0.1, Cutmix: 1, Classes: 1000})
//
// All randomness comes from the stream of the sample (data.Rand), so it depends on seed, epoch and sample alone, and not on ranks, workers or restarts.
//
// # Pictures
//
// A [Pipeline] works on 8-bit pixels after cropping, resizing and flipping. An [Op] is one operation; a [Policy] draws operations and their arguments. The
// operations give Pillow's pixels, byte by byte; those that move pixels are bilinear. (timm chooses between bilinear and bicubic
// at random.) [Erase] works on the normalised values.
//
//   - [RandAugment] (arXiv 1909.13719): timm's operations and magnitudes, or torchvision's.
//   - [TrivialAugment] (arXiv 2103.10158): torchvision's TrivialAugmentWide.
//   - [Jitter]: torchvision's ColorJitter.
//   - [Erase] (arXiv 1708.04896).
//
// To add an operation, [Register] it from an init function in a file of its own.
//
// # Pairs
//
// [Mix] is mixup (arXiv 1710.09412) and cutmix (arXiv 1905.04899): two samples become mixtures of each other, and so do their targets. [Mixed] is a source
// whose loader brings samples together in pairs, wherever the global batch is divided.
package augment
