// Package images provides sources of labelled pictures (folders of JPEG and PNG files, IDX files, packed shards), the decoder, and the
// transforms that turn a picture into a sample.
//
// All sources are data.Source with two fields: image, f32[C H W], and label, i32. Give them to data.NewLoader.
//
//	src, err := images.NewFolder("imagenet/train", images.FolderOptions{
//		Transform: images.RandomResizedCrop{Width: 224, Height: 224, Flip: 0.5},
//		Norm:      images.ImageNet,
//	})
//	val, err := images.NewFolder("imagenet/val", images.FolderOptions{
//		Transform: images.ResizeCrop{Short: 256, Width: 224, Height: 224},
//		Norm:      images.ImageNet,
//		Classes:   src.Classes(), // the same labels, whatever folders val has
//	})
//
// # Sources
//
//   - [Folder]: ROOT/CLASS/*.jpg|png|gif, labels and order as torchvision's ImageFolder gives them.
//   - [IDX]: MNIST, Fashion-MNIST and relatives, gzipped or not, held in memory. [FindIDX] finds the files of a split.
//   - [Packed]: fixed-size records in one or more files ("imagenet_train.bin"), read with pread. [Packer] and [Pack] write them; [Layout] documents a record.
//
// # Pixels
//
// A [Decoder] detects formats by content (ImageNet has a PNG and CMYK files under .jpg names) and checks the size in the header before it
// allocates memory. Ordinary JPEGs (baseline, grey or YCbCr with the usual subsampling) are decoded by package baseline, only as far as the sample needs them;
// the others (progressive, CMYK, damaged …) by libjpeg-turbo where it is installed (package turbojpeg; apt-get install libturbojpeg0). Both give Pillow's
// pixels. Without libjpeg-turbo the others are decoded by Go's image/jpeg, whose pixels differ by up to 34 levels, mean 0.5 to 1.8, where chroma is
// subsampled, and which refuses arithmetic coding. [Folder.Backend] says which it is.
//
// As in torchvision: EXIF orientation is ignored, alpha is dropped, colour profiles are ignored, damaged but complete files are accepted (FolderOptions.Warn
// reports them), truncated files are errors. Damage below the region that a sample needs is not noticed, because nothing is read there.
//
// # Transforms
//
// A [Transform] only chooses a [View]: a region, and how to resize and flip it. Decoding of the region, resizing, flipping, normalising and conversion to
// planes then happen in one pass, in reused memory. Resizing is Pillow's antialiased bilinear filter, bit for bit, with vector instructions or without. A JPEG
// whose region is more than four times the output is shrunk while it is decoded, which costs a fraction and keeps at least twice the needed pixels.
//
//   - [RandomResizedCrop]: training on photographs.
//   - [ResizeCrop]: evaluation.
//   - [PadCrop]: training on small pictures.
//
// # Speed
//
// BenchmarkFolder prints pictures a second on one core for read + decode + RandomResizedCrop 224 + normalise. On an AMD EPYC (Zen 5): 1900 for pictures of
// 500 x 375 and 2800 for the bundled flowers; about 130 and 330 with Go's decoder. docs/benchmarks.md compares with other loaders, and "gotrain bench data"
// measures a recipe on your machine.
package images
