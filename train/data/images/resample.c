// Antialiased resizing with Pillow's rounding, and conversion to planes of floats.
//
// A weight of 22 bits is split into two of 11, so that a product fits the instruction that multiplies 16-bit numbers and adds neighbours:
// sum k·p = 2^11 · sum (k >> 11)·p + sum (k & 2047)·p, exactly.
#include "resample.h"
#include <string.h>

#define BITS 22
#define HALF (1 << (BITS - 1))

int64_t rs_row(int32_t w, int32_t channels) { return (((int64_t)w * channels + 63) & ~(int64_t)63) + 64; }
int64_t rs_packed(int32_t w, int32_t taps, int32_t channels) { return channels == 3 ? (int64_t)w * ((taps + 3) / 4) * 32 : 0; }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define V3 __attribute__((target("avx2,fma,bmi,bmi2")))
#define INLINE V3 static inline __attribute__((always_inline))

int rs_vectors(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"); }

// The weights of four taps are 16 numbers: high halves of taps 0 and 1 for red, green and blue, two zeros, the same of taps 2 and 3; then their low halves.
V3 static void pack(const rs_job *j, const int32_t *k, int16_t *out) {
	int groups = (j->htaps + 3) / 4;
	for (int i = 0; i < j->w; i++, k += j->htaps)
		for (int g = 0; g < groups; g++, out += 32)
			for (int lane = 0; lane < 2; lane++) {
				uint32_t at = (uint32_t)(4 * g + 2 * lane), n = (uint32_t)j->htaps;
				uint32_t a = at < n ? (uint32_t)k[at] : 0, b = at + 1 < n ? (uint32_t)k[at + 1] : 0;
				uint32_t hi = a >> 11 | b >> 11 << 16, lo = (a & 2047) | (b & 2047) << 16;
				__m128i zero = _mm_setzero_si128();
				_mm_storeu_si128((__m128i *)(out + 8 * lane), _mm_blend_epi16(_mm_set1_epi32((int)hi), zero, 0xc0));
				_mm_storeu_si128((__m128i *)(out + 16 + 8 * lane), _mm_blend_epi16(_mm_set1_epi32((int)lo), zero, 0xc0));
			}
}

// The sums of one output pixel, in the lower three numbers.
INLINE __m128i pixel(const uint8_t *p, const int16_t *k, int groups, __m256i order) {
	__m256i hi = _mm256_setzero_si256(), lo = hi;
	for (int g = 0; g < groups; g++, p += 12, k += 32) {
		__m256i v = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p)), order);
		hi = _mm256_add_epi32(hi, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)k)));
		lo = _mm256_add_epi32(lo, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)(k + 16))));
	}
	__m256i sum = _mm256_add_epi32(_mm256_slli_epi32(hi, 11), lo);
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
	return _mm_srai_epi32(_mm_add_epi32(s, _mm_set1_epi32(HALF)), BITS);
}

// One row of red, green and blue. Where the output is mirrored, it is written from its other end.
INLINE void row_rgb(const rs_job *j, const uint8_t *src, const int64_t *from, const int16_t *packed, int groups, uint8_t *out) {
	const __m256i order = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
	const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
	src -= 3 * (int64_t)j->x;
	int i = j->flip ? j->w - 1 : 0, step = j->flip ? -1 : 1;
	for (int n = 0; n < j->w; n++, i += step, out += 3) {
		__m128i v = pixel(src + 3 * from[i], packed + (int64_t)i * groups * 32, groups, order);
		int px = _mm_cvtsi128_si32(_mm_shuffle_epi8(v, bytes));
		memcpy(out, &px, 4); // the fourth byte is overwritten by the next pixel
	}
}

V3 static void rows_rgb(const rs_job *j, const uint8_t *src, int64_t n, const int64_t *from, const int16_t *packed, uint8_t *out) {
	int64_t size = rs_row(j->w, 3);
	int groups = (j->htaps + 3) / 4;
	for (int64_t y = 0; y < n; y++, src += j->stride, out += size) {
		if (groups == 1)
			row_rgb(j, src, from, packed, 1, out);
		else
			row_rgb(j, src, from, packed, groups, out);
	}
}

// One output row of n bytes, rounded up to 32: the weighted sum of taps rows that lie size bytes apart.
V3 static void column(const uint8_t *rows, int64_t size, const int32_t *k, int taps, int64_t n, uint8_t *out) {
	for (int64_t i = 0; i < n; i += 16) {
		__m256i h0 = _mm256_setzero_si256(), h1 = h0, l0 = h0, l1 = h0;
		const uint8_t *p = rows + i;
		for (int t = 0; t < taps; t += 2, p += 2 * size) {
			uint32_t a = (uint32_t)k[t], b = t + 1 < taps ? (uint32_t)k[t + 1] : 0;
			__m256i hi = _mm256_set1_epi32((int)(a >> 11 | b >> 11 << 16)), lo = _mm256_set1_epi32((int)((a & 2047) | (b & 2047) << 16));
			__m256i u = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
			__m256i v = t + 1 < taps ? _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(p + size))) : u;
			__m256i x = _mm256_unpacklo_epi16(u, v), y = _mm256_unpackhi_epi16(u, v);
			h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(x, hi));
			h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(y, hi));
			l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(x, lo));
			l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(y, lo));
		}
		const __m256i half = _mm256_set1_epi32(HALF);
		h0 = _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(h0, 11), l0), half), BITS);
		h1 = _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(h1, 11), l1), half), BITS);
		__m256i w = _mm256_packs_epi32(h0, h1);
		// Bytes wrap as in Go: what does not fit cannot occur.
		_mm_storeu_si128((__m128i *)(out + i), _mm_packus_epi16(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1)));
	}
}

// 16 bytes become 16 floats, v*scale + bias in double precision.
INLINE void floats(__m128i v, __m256d scale, __m256d bias, float *out) {
	for (int i = 0; i < 4; i++) {
		__m256d d = _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(v));
		_mm_storeu_ps(out + 4 * i, _mm256_cvtpd_ps(_mm256_fmadd_pd(d, scale, bias)));
		v = _mm_srli_si128(v, 4);
	}
}

// One channel of a line; px is its first byte.
V3 static void plane_row(const uint8_t *px, int channels, int w, int linear, double scale, double bias, const float *table, float *out) {
	int i = 0;
	if (linear) {
		const __m256d s = _mm256_set1_pd(scale), b = _mm256_set1_pd(bias);
		if (channels == 1) {
			for (; i + 16 <= w; i += 16) floats(_mm_loadu_si128((const __m128i *)(px + i)), s, b, out + i);
		} else {
			const __m128i m0 = _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
			const __m128i m1 = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1);
			const __m128i m2 = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13);
			for (; i + 16 <= w; i += 16) {
				const __m128i *p = (const __m128i *)(px + 3 * i);
				__m128i v = _mm_shuffle_epi8(_mm_loadu_si128(p), m0);
				v = _mm_or_si128(v, _mm_shuffle_epi8(_mm_loadu_si128(p + 1), m1));
				v = _mm_or_si128(v, _mm_shuffle_epi8(_mm_loadu_si128(p + 2), m2));
				floats(v, s, b, out + i);
			}
		}
	}
	for (; i < w; i++) out[i] = table[px[channels * i]];
}
#else
#define V3
int rs_vectors(void) { return 0; }
static void pack(const rs_job *j, const int32_t *k, int16_t *out) {}
static void rows_rgb(const rs_job *j, const uint8_t *src, int64_t n, const int64_t *from, const int16_t *packed, uint8_t *out) {}
static void column(const uint8_t *rows, int64_t size, const int32_t *k, int taps, int64_t n, uint8_t *out) {}
static void plane_row(const uint8_t *px, int channels, int w, int linear, double scale, double bias, const float *table, float *out) {}
#endif

// One row of one channel.
static void row_gray(const rs_job *j, const uint8_t *src, const int64_t *from, const int32_t *k, uint8_t *out) {
	src -= j->x;
	for (int i = 0; i < j->w; i++, k += j->htaps) {
		int32_t v = HALF;
		for (int t = 0; t < j->htaps; t++) v += k[t] * src[from[i] + t];
		out[j->flip ? j->w - 1 - i : i] = (uint8_t)(v >> BITS);
	}
}

// The horizontal pass over all rows that are needed. It returns their number.
V3 static int64_t horizontal(const rs_job *j, const uint8_t *src, const int64_t *hfrom, const int32_t *hk, const int64_t *vfrom, int16_t *packed,
                             uint8_t *rows) {
	int64_t size = rs_row(j->w, j->channels), first = vfrom[0], n = vfrom[j->h - 1] + j->vtaps - first;
	src += (first - j->y) * j->stride;
	if (j->channels == 3) {
		pack(j, hk, packed);
		rows_rgb(j, src, n, hfrom, packed, rows);
	} else {
		for (int64_t y = 0; y < n; y++) row_gray(j, src + y * j->stride, hfrom, hk, rows + y * size);
	}
	return n;
}

V3 static void planes(const rs_job *j, const uint8_t *line, int y, const float *const *tables, float *dst) {
	for (int p = 0; p < j->planes; p++)
		plane_row(line + (j->channels == 3 ? p : 0), j->channels, j->w, j->linear[p], j->scale[p], j->bias[p], tables[p],
		          dst + ((int64_t)p * j->h + y) * j->w);
}

V3 void rs_draw(const rs_job *j, const uint8_t *src, const int64_t *hfrom, const int32_t *hk, const int64_t *vfrom, const int32_t *vk, int16_t *packed,
                uint8_t *rows, const float *table0, const float *table1, const float *table2, float *dst) {
	const float *tables[3] = {table0, table1, table2};
	int64_t size = rs_row(j->w, j->channels), first = vfrom[0], n = horizontal(j, src, hfrom, hk, vfrom, packed, rows);
	uint8_t *line = rows + n * size;
	for (int y = 0; y < j->h; y++) {
		column(rows + (vfrom[y] - first) * size, size, vk + (int64_t)y * j->vtaps, j->vtaps, (int64_t)j->w * j->channels, line);
		planes(j, line, y, tables, dst);
	}
}

V3 void rs_draw_bytes(const rs_job *j, const uint8_t *src, const int64_t *hfrom, const int32_t *hk, const int64_t *vfrom, const int32_t *vk, int16_t *packed,
                      uint8_t *rows, uint8_t *dst) {
	int64_t size = rs_row(j->w, j->channels), first = vfrom[0], row = (int64_t)j->w * j->channels;
	horizontal(j, src, hfrom, hk, vfrom, packed, rows);
	for (int y = 0; y < j->h; y++) // what is written behind a row is overwritten by the next
		column(rows + (vfrom[y] - first) * size, size, vk + (int64_t)y * j->vtaps, j->vtaps, row, dst + y * row);
}

V3 void rs_planes(const rs_job *j, const uint8_t *pix, const float *table0, const float *table1, const float *table2, float *dst) {
	const float *tables[3] = {table0, table1, table2};
	for (int y = 0; y < j->h; y++) planes(j, pix + (int64_t)y * j->w * j->channels, y, tables, dst);
}
