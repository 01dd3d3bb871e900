// Weight gradients of convolutions in bf16 by products of pairs of pixels, shared by its C file and its builds.
#ifndef KERN_PAIRS_H
#define KERN_PAIRS_H

#include "kern.h"

// Channels of x and of dy whose products are added in registers; channels that are interleaved at once; words between pairs of pixels, which are not a power of
// two apart, so that not all of them want the same few lines of the first-level cache.
enum { PAIRS_COLS = 32, PAIRS_ROWS = 8, PAIRS_STEP = 32, PAIRS_GAP = 16 };

// One convolution; kern_cmd.v holds one, which package kern's Go code fills field by field. x is [images h w in], dy [images oh ow out], dw [out kh kw in].
// A block is rows channels of dy and columns channels of x at one tap; a part is what one thread does, a range of blocks with memory of its own. Blocks of the
// same rows follow each other.
typedef struct {
	int64_t images, h, w, in;
	int64_t oh, ow, out;
	int64_t kh, kw, sh, sw, dh, dw, top, left;
	int64_t rows, columns, strip; // strip: pixels that are interleaved before they are multiplied, an even number
	int64_t parts, part;          // part: bytes of the memory of each: pairs of dy and of x, sums of a block
} pairs;

#endif
