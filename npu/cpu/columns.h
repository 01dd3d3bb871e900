// Columns of a convolution (im2col): each output pixel's window of an nhwc image as one row, with zeros for the padding.
#ifndef GT_COLUMNS_H
#define GT_COLUMNS_H
#include <stdint.h>

typedef struct {
    const char *x;  // n h w pixels
    char *col;      // n oh ow rows of kh kw pixels
    int64_t pixel;  // bytes of one pixel: all channels
    int64_t n, h, w, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
} gt_columns;
int gt_columns_run(void *columns, void *stream);
#endif
