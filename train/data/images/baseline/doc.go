// Package baseline decodes a region of a JPEG, with the pixels of libjpeg-turbo.
//
// It knows the kind of file that data sets consist of: baseline DCT with Huffman codes, 8 bits, grey or YCbCr with chroma of full size (4:4:4), half the
// width (4:2:2) or half the width and height (4:2:0), all components in one scan. [Decoder.Parse] refuses everything else with [ErrOther], and
// [Decoder.Decode] refuses a file that is damaged with [ErrDamaged]; then a general decoder must say what can be done about it.
//
//	var d baseline.Decoder
//	if err := d.Parse(file); err == nil {
//		w, h := d.Size()
//		err = d.Decode(file, image.Rect(100, 100, 200, 200), pix) // pix: 100 × 100 × 3 bytes, RGB
//	}
//
// # Speed
//
// A training sample is usually a random crop of half the picture. So nothing below the region is read, blocks outside of it are skipped (their codes are
// looked up two at a time, and nothing is stored), and only blocks of the region are transformed. There are C kernels for AVX2, in plain C for other
// processors, and in Go for builds without cgo; all give the same bytes.
//
// Because nothing below the region is read, damage there goes unnoticed; a file without end marker is refused.
//
// # Pixels
//
// They equal those of libjpeg-turbo with the accurate inverse DCT and smooth chroma, which are its defaults and Pillow's: the integer DCT of Loeffler,
// Ligtenberg and Moschytz (ICASSP 1989) in 13-bit fixed point, chroma interpolated by weights 3/4 and 1/4, and the conversion of JFIF in 16-bit fixed point.
package baseline
