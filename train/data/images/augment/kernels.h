// The operations that are slow in Go, with the same results bit for bit. Pictures are interleaved, w * h pixels of c bytes.
#ifndef AUGMENT_H
#define AUGMENT_H
#include <stdint.h>

void aug_warp(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill);
void aug_colour(uint8_t *pix, int64_t n, float factor);
void aug_sharpness(uint8_t *dst, const uint8_t *src, int w, int h, int c, float factor);
void aug_hue(uint8_t *pix, int64_t n, int shift);
#endif
