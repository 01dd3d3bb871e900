// The operations that are slow in Go, with the same results bit for bit. Pictures are interleaved, w * h pixels of c bytes.
#ifndef AUGMENT_H
#define AUGMENT_H
#include <stdint.h>

// The best set of vector instructions: 0 none in particular, 1 AVX2, 2 AVX-512 with VBMI.
int aug_level(void);

// The last argument of each is a level that the processor has. Behind the pixels of src are at least four bytes that may be read.
void aug_warp(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill, int level);
void aug_colour(uint8_t *pix, int64_t n, float factor, int level);
void aug_sharpness(uint8_t *dst, const uint8_t *src, int w, int h, int c, float factor, int level);
void aug_hue(uint8_t *pix, int64_t n, int shift, int level);
int64_t aug_grey(const uint8_t *pix, int64_t n, int level); // sum of the luminances
// Only with level 2: a table for all bytes, or three for red, green and blue.
void aug_map(uint8_t *pix, int64_t n, const uint8_t *table);
void aug_map3(uint8_t *pix, int64_t n, const uint8_t *tables);
#endif
