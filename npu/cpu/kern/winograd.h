// Winograd convolution, shared by its C files. kern_cmd.v holds a wino, which package kern's Go code fills field by field.
#ifndef KERN_WINOGRAD_H
#define KERN_WINOGRAD_H

#include "kern.h"

// A picture in memory, strides in elements: channel c of a pixel is at image, row and pixel plus c >> shift blocks and what remains of c.
typedef struct {
	int64_t h, w, image, block, row, pixel, shift;
} wino_picture;

// A matrix product with its memory: a command of the library.
typedef struct {
	int64_t fn, self;
} wino_product;

// One convolution. The transformed input is the left factor of the products for all kinds: of x (forward, weight gradient) or of dy (data gradient).
// Either strips or blocks is 1. Tiles are numbered by image, row and column, and strip s has those from s·tiles/strips on; block b has the channels of the
// result from b·width on. A part is what one thread does: a range of strips or blocks, with memory of its own.
//
// Products of a part: [0] for the larger size, [1] for the smaller (strips differ by at most one tile; the last block may be narrower). Weight gradients have
// two more, which add to the result: [2] and [3].
typedef struct {
	int64_t tile, bf16, cell;      // bf16: pictures and weights are; cell: bytes of an element of the products' factors
	int64_t images, in, out;       // in and out: channels of the left factor and of the right one
	wino_picture x, y;             // the left factor's picture; the result's, or for the weight gradient dy
	int64_t top, left;             // padding of x before tile 0
	int64_t rows, cols;            // tiles of an image
	int64_t parts, strips, blocks, width;
	int64_t flip, relu;            // flip: the weights are those of the forward pass, for the data gradient
	int64_t common, part, second, third; // bytes: where the parts' memory begins, size of each, and where its second and third matrix are
	wino_product products[];
} wino;

#endif
