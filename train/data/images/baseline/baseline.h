// What Go gives to the C kernels. No struct holds a pointer.
#ifndef BASELINE_H
#define BASELINE_H
#include <stddef.h>
#include <stdint.h>

#define BL_FAST 11

// See huffman in huffman.go.
typedef struct {
	int32_t fast[1 << BL_FAST];
	uint16_t skip[1 << BL_FAST];
	int32_t limit[18];
	int32_t shift[17];
	uint8_t syms[256];
} bl_huffman;

// See job in job.go.
typedef struct {
	int32_t w, h, comps, hs, vs, restart, isa;
	int32_t x0, y0, x1, y1;
	int32_t dc[3], ac[3];
	struct {
		int32_t col0, col1, row0, row1; // blocks that are wanted
		int32_t w, h;                   // samples of the component
		int32_t at;                     // of its plane in the scratch memory
	} c[3];
	int32_t lines; // of the scratch memory that color takes
	uint16_t quant[3][64];
} bl_job;

enum { BL_BASE, BL_V3 };

// The best build that this processor can run.
int bl_isa(void);

// Removes the stuffing from the data of one restart interval: returns how many bytes dst has, and in *used how many were read. *marker is what ended them,
// or 0 at the end.
size_t bl_unstuff(uint8_t *dst, const uint8_t *src, size_t n, size_t *used, int *marker);

// Decodes the MCUs from first to last-1, which lie in src, n bytes without stuffing followed by BL_PAD bytes. Returns 0, or -1 for damaged data.
// whole: the bits behind the last MCU must be padding.
int bl_mcus(const bl_job *j, const bl_huffman *dc, const bl_huffman *ac, const uint8_t *src, size_t n, int64_t first, int64_t last, int whole, uint8_t *planes);

// Writes the region as RGB.
void bl_color(const bl_job *j, uint8_t *planes, uint8_t *rgb);

// An MCU of six blocks takes at most 6 × 64 × 31 bits.
#define BL_PAD 2048
#endif
