// Package mosaic makes large photographs for benchmarks out of small ones.
//
//	err := mosaic.Write("flowers/train", filepath.Join(dir, "all"), 60)
//
// The time to decode and resize a picture depends on its size and on its detail. A small picture that is scaled up has too little detail. A mosaic of small
// ones, unscaled, has that of a photograph of its size. The pictures are 500 x 375 pixels, which is about the mean of ImageNet's.
package mosaic
