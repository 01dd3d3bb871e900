// Products are rounded before they are added, as in Go: GCC does so with -std=c11, clang with the pragma.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
#include "kernels.h"
#include <string.h>

static inline int max(int a, int b) { return a > b ? a : b; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline uint8_t cut(float v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : (int)v); }

// See bilinear in affine.go.
enum { BITS = 14, ONE = 1 << BITS };

static inline __attribute__((always_inline)) void warp(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill) {
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++, dst += c) {
			double fx = x + 0.5, fy = y + 0.5;
			double sx = m[0] * fx + m[1] * fy + m[2], sy = m[3] * fx + m[4] * fy + m[5];
			if (!(sx >= 0 && sy >= 0 && sx < w && sy < h)) {
				for (int k = 0; k < c; k++) dst[k] = fill[k];
				continue;
			}
			int32_t px = (int32_t)((sx - 0.5) * ONE + ONE) - ONE, py = (int32_t)((sy - 0.5) * ONE + ONE) - ONE;
			int dx = px & (ONE - 1), dy = py & (ONE - 1), x0 = px >> BITS, y0 = py >> BITS;
			int x1 = min(x0 + 1, w - 1), y1 = min(y0 + 1, h - 1);
			x0 = max(x0, 0), y0 = max(y0, 0);
			const uint8_t *a = src + (y0 * (int64_t)w + x0) * c, *b = src + (y0 * (int64_t)w + x1) * c;
			const uint8_t *d = src + (y1 * (int64_t)w + x0) * c, *e = src + (y1 * (int64_t)w + x1) * c;
			for (int k = 0; k < c; k++) {
				int64_t top = (a[k] << BITS) + (b[k] - a[k]) * dx, low = (d[k] << BITS) + (e[k] - d[k]) * dx;
				dst[k] = (uint8_t)(((top << BITS) + (low - top) * dy) >> (2 * BITS));
			}
		}
}

void aug_warp(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill) {
	if (c == 3)
		warp(dst, src, w, h, 3, m, fill);
	else
		warp(dst, src, w, h, 1, m, fill);
}

void aug_colour(uint8_t *pix, int64_t n, float factor) {
	for (; n > 0; n--, pix += 3) {
		int l = (19595 * pix[0] + 38470 * pix[1] + 7471 * pix[2] + 0x8000) >> 16;
		for (int k = 0; k < 3; k++) pix[k] = cut((float)l + factor * (float)(pix[k] - l));
	}
}

void aug_sharpness(uint8_t *dst, const uint8_t *src, int w, int h, int c, float factor) {
	int64_t n = (int64_t)w * c;
	for (int y = 1; y < h - 1; y++) {
		const uint8_t *mid = src + y * n, *up = mid - n, *low = mid + n;
		uint8_t *out = dst + y * n;
		for (int64_t x = c; x < n - c; x++) {
			int sum = up[x - c] + up[x] + up[x + c] + mid[x - c] + 5 * mid[x] + mid[x + c] + low[x - c] + low[x] + low[x + c];
			int soft = (2 * sum + 13) / 26;
			out[x] = cut((float)soft + factor * (float)(mid[x] - soft));
		}
	}
}

static inline uint8_t rounded(double x) { return (uint8_t)max(0, min(255, (int)((double)(float)x + 0.5))); }

// See toHSV and fromHSV in colour.go.
void aug_hue(uint8_t *pix, int64_t n, int shift) {
	double parts[256], saturations[256];
	uint8_t sixths[256];
	for (int v = 0; v < 256; v++) {
		double at = (double)v * 6 / 255;
		int i = (int)at;
		sixths[v] = (uint8_t)(i % 6);
		parts[v] = (double)(float)(at - i);
		saturations[v] = (double)(float)((double)v / 255);
	}
	for (; n > 0; n--, pix += 3) {
		int r = pix[0], g = pix[1], b = pix[2], hi = max(r, max(g, b)), lo = min(r, min(g, b));
		if (hi == lo) continue; // grey stays
		float d = (float)(hi - lo), rc = (float)(hi - r) / d, gc = (float)(hi - g) / d, bc = (float)(hi - b) / d;
		float x = hi == r ? bc - gc : hi == g ? 2 + rc - bc : 4 + gc - rc;
		double turn = (double)x / 6 + 1;
		if (turn >= 1) turn--;
		uint8_t h = (uint8_t)((uint8_t)(int)((double)(float)turn * 255) + shift), s = (uint8_t)(int)((double)(d / (float)hi) * 255);
		if (s == 0) {
			pix[0] = pix[1] = pix[2] = (uint8_t)hi;
			continue;
		}
		double v = hi, fs = saturations[s], f = parts[h];
		uint8_t p = rounded(v * (1 - fs)), q = rounded(v * (1 - fs * f)), t = rounded(v * (1 - fs * (1 - f))), o = (uint8_t)hi;
		const uint8_t all[6][3] = {{o, t, p}, {q, o, p}, {p, o, t}, {p, q, o}, {t, p, o}, {o, p, q}};
		memcpy(pix, all[sixths[h]], 3);
	}
}
