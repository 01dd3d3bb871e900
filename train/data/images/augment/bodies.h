// The kernels, in loops that compilers turn into vector instructions. kernels.c includes this file once for each set of instructions: V gives names, TARGET
// chooses the set.

#ifndef CHUNK
#define CHUNK 256 // pixels that are treated together, in the first cache
#define CUT(v) ((v) < 0 ? 0 : (v) > 255 ? 255 : (v))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PLACE(x, y) (((y) * w + (x)) * c)
#endif

// split takes pixels apart, and join puts them together.
TARGET static void V(split)(const uint8_t *restrict pix, int n, uint8_t *restrict r, uint8_t *restrict g, uint8_t *restrict b) {
	for (int i = 0; i < n; i++) r[i] = pix[3 * i], g[i] = pix[3 * i + 1], b[i] = pix[3 * i + 2];
}

TARGET static void V(join)(uint8_t *restrict pix, int n, const uint8_t *restrict r, const uint8_t *restrict g, const uint8_t *restrict b) {
	for (int i = 0; i < n; i++) pix[3 * i] = r[i], pix[3 * i + 1] = g[i], pix[3 * i + 2] = b[i];
}

// mixed is one channel of n pixels between four others each, as Pillow computes it.
TARGET static inline __attribute__((always_inline)) void V(mixed)(int n, int shift, const uint32_t p[restrict 4][CHUNK], const double *restrict dx,
	const double *restrict dy, uint32_t *restrict out) {
	for (int i = 0; i < n; i++) {
		double a = (double)(int32_t)(p[0][i] >> shift & 255), b = (double)(int32_t)(p[1][i] >> shift & 255);
		double d = (double)(int32_t)(p[2][i] >> shift & 255), e = (double)(int32_t)(p[3][i] >> shift & 255);
		double top = a + (b - a) * dx[i], low = d + (e - d) * dx[i];
		uint32_t v = (uint32_t)(int32_t)(top + (low - top) * dy[i]);
		out[i] = shift == 0 ? v : out[i] | v << shift;
	}
}

// inside finds which of n pixels come from within the picture: those from *lo to *hi - 1, for places move in one direction.
TARGET static void V(inside)(int n, int w, int h, const double *sx, const double *sy, int *lo, int *hi) {
	int a = 0, b = n;
#define IN(i) (sx[i] >= 0 && sy[i] >= 0 && sx[i] < w && sy[i] < h)
	while (a < b && !IN(a)) a++;
	while (a < b && !IN(b - 1)) b--;
#undef IN
	*lo = a, *hi = b;
}

// See warp in affine.go.
TARGET static inline __attribute__((always_inline)) void V(warped)(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m,
	const uint8_t *fill) {
	double sx[CHUNK], sy[CHUNK], dx[CHUNK], dy[CHUNK];
	int32_t at[4][CHUNK];
	uint32_t p[4][CHUNK], out[CHUNK];
	uint8_t border[3 * CHUNK];
	for (int i = 0; i < CHUNK; i++)
		for (int k = 0; k < c; k++) border[c * i + k] = fill[k];
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x += CHUNK) {
			int n = MIN(CHUNK, w - x), lo, hi;
			double fy = y + 0.5;
			for (int i = 0; i < n; i++) {
				double fx = (x + i) + 0.5;
				sx[i] = m[0] * fx + m[1] * fy + m[2], sy[i] = m[3] * fx + m[4] * fy + m[5];
			}
			V(inside)(n, w, h, sx, sy, &lo, &hi);
			memcpy(dst, border, (size_t)(lo * c));
			n = hi - lo;
			for (int i = 0; i < n; i++) {
				double px = sx[lo + i] - 0.5, py = sy[lo + i] - 0.5;
				int32_t x0 = (int32_t)px, y0 = (int32_t)py; // rounded down, below 0 too
				x0 -= px < x0, y0 -= py < y0;
				dx[i] = px - x0, dy[i] = py - y0;
				int32_t x1 = MIN(x0 + 1, w - 1), y1 = MIN(y0 + 1, h - 1);
				x0 = MAX(x0, 0), y0 = MAX(y0, 0);
				at[0][i] = PLACE(x0, y0), at[1][i] = PLACE(x1, y0), at[2][i] = PLACE(x0, y1), at[3][i] = PLACE(x1, y1);
			}
			for (int k = 0; k < 4; k++)
				for (int i = 0; i < n; i++) memcpy(&p[k][i], src + at[k][i], 4);
			for (int k = 0; k < c; k++) V(mixed)(n, 8 * k, p, dx, dy, out);
			uint8_t *to = dst + lo * c;
			int i = 0, wide = n - (c == 3 ? 1 : 3); // pixels behind which so many follow that four bytes end within them
			for (; i < wide; i++, to += c) memcpy(to, &out[i], 4); // what is too much is overwritten by the next pixels
			for (; i < n; i++, to += c) memcpy(to, &out[i], (size_t)c);
			n = MIN(CHUNK, w - x);
			memcpy(dst + hi * c, border, (size_t)((n - hi) * c));
			dst += n * c;
		}
}

TARGET static void V(warp)(uint8_t *dst, const uint8_t *src, int w, int h, int c, const double *m, const uint8_t *fill) {
	if (c == 3)
		V(warped)(dst, src, w, h, 3, m, fill);
	else
		V(warped)(dst, src, w, h, 1, m, fill);
}

TARGET static int64_t V(greys)(const uint8_t *pix, int64_t n) {
	uint8_t r[CHUNK], g[CHUNK], b[CHUNK];
	int64_t sum = 0;
	for (; n > 0; n -= CHUNK, pix += 3 * CHUNK) {
		int k = n < CHUNK ? (int)n : CHUNK, part = 0;
		V(split)(pix, k, r, g, b);
		for (int i = 0; i < k; i++) part += (19595 * r[i] + 38470 * g[i] + 7471 * b[i] + 0x8000) >> 16;
		sum += part;
	}
	return sum;
}

// See colourPlain in colour.go.
TARGET static void V(colour)(uint8_t *pix, int64_t n, float factor) {
	uint8_t c[3][CHUNK];
	int32_t l[CHUNK];
	for (; n > 0; n -= CHUNK, pix += 3 * CHUNK) {
		int k = n < CHUNK ? (int)n : CHUNK;
		V(split)(pix, k, c[0], c[1], c[2]);
		for (int i = 0; i < k; i++) l[i] = (19595 * c[0][i] + 38470 * c[1][i] + 7471 * c[2][i] + 0x8000) >> 16;
		for (int j = 0; j < 3; j++)
			for (int i = 0; i < k; i++) {
				float v = (float)l[i] + factor * (float)(c[j][i] - l[i]);
				c[j][i] = (uint8_t)(int32_t)CUT(v);
			}
		V(join)(pix, k, c[0], c[1], c[2]);
	}
}

// See sharpnessPlain in sharpness.go. A sum of nine pixels is at most 3315; up to 13000, n * 5042 >> 16 is n / 13.
TARGET static void V(sharpness)(uint8_t *restrict dst, const uint8_t *restrict src, int w, int h, int c, float factor) {
	int64_t n = (int64_t)w * c;
	for (int y = 1; y < h - 1; y++) {
		const uint8_t *mid = src + y * n, *up = mid - n, *low = mid + n;
		uint8_t *out = dst + y * n;
		for (int64_t x = c; x < n - c; x++) {
			uint16_t sum = up[x - c] + up[x] + up[x + c] + mid[x - c] + 5 * mid[x] + mid[x + c] + low[x - c] + low[x] + low[x + c] + 6;
			uint16_t soft = (uint16_t)((uint32_t)sum * 5042 >> 16);
			float v = (float)soft + factor * (float)(mid[x] - soft);
			out[x] = (uint8_t)(int32_t)CUT(v);
		}
	}
}

#ifndef ROUNDED
#define ROUNDED(x) ((int32_t)((double)(float)(x) + 0.5))
#endif

// See toHSV and fromHSV in colour.go. Grey has no hue, and is not changed: its saturation is 0.
TARGET static void V(hue)(uint8_t *pix, int64_t n, int shift) {
	uint8_t c[3][CHUNK];
	int32_t h[CHUNK], s[CHUNK];
	for (; n > 0; n -= CHUNK, pix += 3 * CHUNK) {
		int k = n < CHUNK ? (int)n : CHUNK;
		V(split)(pix, k, c[0], c[1], c[2]);
		for (int i = 0; i < k; i++) {
			int32_t r = c[0][i], g = c[1][i], b = c[2][i], hi = MAX(r, MAX(g, b)), d = hi - MIN(r, MIN(g, b));
			float fd = (float)MAX(d, 1), rc = (float)(hi - r) / fd, gc = (float)(hi - g) / fd, bc = (float)(hi - b) / fd;
			float green = 2 + rc - bc, blue = 4 + gc - rc, x = hi == g ? green : blue;
			x = hi == r ? bc - gc : x;
			double turn = (double)x / 6 + 1;
			turn = turn >= 1 ? turn - 1 : turn;
			h[i] = ((int32_t)((double)(float)turn * 255) + shift) & 255;
			s[i] = (int32_t)((double)((float)d / (float)MAX(hi, 1)) * 255);
		}
		for (int i = 0; i < k; i++) {
			int32_t r = c[0][i], g = c[1][i], b = c[2][i], o = MAX(r, MAX(g, b));
			double at = (double)(h[i] * 6) / 255, v = o, fs = (double)(float)((double)s[i] / 255);
			int32_t sixth = (int32_t)at;
			double f = (double)(float)(at - sixth);
			sixth = sixth == 6 ? 0 : sixth;
			int32_t p = ROUNDED(v * (1 - fs)), q = ROUNDED(v * (1 - fs * f)), t = ROUNDED(v * (1 - fs * (1 - f)));
			int32_t is[6]; // masks, because compilers make branches of conditions
			for (int j = 0; j < 6; j++) is[j] = -(sixth == j);
			r = (o & (is[0] | is[5])) | (q & is[1]) | (p & (is[2] | is[3])) | (t & is[4]);
			g = (t & is[0]) | (o & (is[1] | is[2])) | (q & is[3]) | (p & (is[4] | is[5]));
			b = (p & (is[0] | is[1])) | (t & is[2]) | (o & (is[3] | is[4])) | (q & is[5]);
			c[0][i] = (uint8_t)r, c[1][i] = (uint8_t)g, c[2][i] = (uint8_t)b;
		}
		V(join)(pix, k, c[0], c[1], c[2]);
	}
}
