// What Go gives to the C kernel that draws a picture. The struct holds no pointer.
#ifndef RESAMPLE_H
#define RESAMPLE_H
#include <stdint.h>

// See drawJob in resample_native.go.
typedef struct {
	int32_t channels, stride;       // of the picture: bytes a pixel, and bytes a row
	int32_t x, y;                   // of its first pixel
	int32_t w, h;                   // of the output
	int32_t htaps, vtaps, flip, planes;
	int32_t linear[3];
	double scale[3], bias[3];
} rs_job;

// Whether this processor can run rs_draw's vectors.
int rs_vectors(void);

// The bytes of a row after the horizontal pass, and how many 16-bit numbers packed weights are.
int64_t rs_row(int32_t w, int32_t channels);
int64_t rs_packed(int32_t w, int32_t taps, int32_t channels);

// Draws. from and k of both axes are those of weights in resample.go. rows holds one row of rs_row bytes for each row of the picture that is read, and one
// more. table has 256 numbers for each plane. The picture may be read up to 64 bytes beyond its end.
void rs_draw(const rs_job *j, const uint8_t *src, const int64_t *hfrom, const int32_t *hk, const int64_t *vfrom, const int32_t *vk, int16_t *packed,
             uint8_t *rows, const float *table0, const float *table1, const float *table2, float *dst);

// Draws the pixels as they are, w * channels bytes a row; 64 bytes behind the last may be overwritten.
void rs_draw_bytes(const rs_job *j, const uint8_t *src, const int64_t *hfrom, const int32_t *hk, const int64_t *vfrom, const int32_t *vk, int16_t *packed,
                   uint8_t *rows, uint8_t *dst);

// Turns h rows of interleaved pixels into planes. They may be read up to 64 bytes beyond their end.
void rs_planes(const rs_job *j, const uint8_t *pix, const float *table0, const float *table1, const float *table2, float *dst);
#endif
