// The matrix product that convolutions, matmuls and attention share: packed panels, f32 accumulators.
#include "op.h"

enum { MR = 6, NR = 16, MC = 96, KC = 256, NC = 512 };

typedef float v8 __attribute__((vector_size(32), aligned(4)));

static void kernel_body(int64_t kc, const float *a, const float *b, float *acc) __attribute__((always_inline));
static inline void kernel_body(int64_t kc, const float *a, const float *b, float *acc) {
	v8 c[MR][2] = {{{0}}};
	for (int64_t p = 0; p < kc; p++, a += MR, b += NR) {
		const v8 b0 = *(const v8 *)b, b1 = *(const v8 *)(b + 8);
		for (int i = 0; i < MR; i++) {
			const float x = a[i];
			c[i][0] += b0 * x;
			c[i][1] += b1 * x;
		}
	}
	memcpy(acc, c, sizeof c);
}

static void kernel_plain(int64_t kc, const float *a, const float *b, float *acc) { kernel_body(kc, a, b, acc); }

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void kernel_wide(int64_t kc, const float *a, const float *b, float *acc) { kernel_body(kc, a, b, acc); }
#endif

typedef void (*kernel)(int64_t kc, const float *a, const float *b, float *acc);

static kernel kernel_of(void) {
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernel_wide;
#endif
	return kernel_plain;
}

static void pack_a(float *to, const float *a, int64_t ra, int64_t ca, int64_t mc, int64_t kc) {
	for (int64_t i = 0; i < mc; i += MR) {
		for (int64_t p = 0; p < kc; p++) {
			for (int64_t r = 0; r < MR; r++) *to++ = i + r < mc ? a[(i + r) * ra + p * ca] : 0;
		}
	}
}

static void pack_b(float *to, const float *b, int64_t rb, int64_t cb, int64_t kc, int64_t nc) {
	for (int64_t j = 0; j < nc; j += NR) {
		int64_t w = nc - j < NR ? nc - j : NR;
		for (int64_t p = 0; p < kc; p++) {
			const float *s = b + p * rb + j * cb;
			for (int64_t r = 0; r < w; r++) to[r] = s[r * cb];
			for (int64_t r = w; r < NR; r++) to[r] = 0;
			to += NR;
		}
	}
}

void gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t ra, int64_t ca, const float *b, int64_t rb, int64_t cb, float beta, float *c, int64_t ldc) {
	for (int64_t i = 0; i < m && beta != 1; i++) {
		for (int64_t j = 0; j < n; j++) c[i * ldc + j] = beta == 0 ? 0 : c[i * ldc + j] * beta;
	}
	float *pa = malloc(sizeof(float) * (MC + MR) * KC), *pb = malloc(sizeof(float) * (NC + NR) * KC), acc[MR * NR];
	if (!pa || !pb) abort();
	const kernel mul = kernel_of();
	for (int64_t j0 = 0; j0 < n; j0 += NC) {
		int64_t nc = n - j0 < NC ? n - j0 : NC;
		for (int64_t p0 = 0; p0 < k; p0 += KC) {
			int64_t kc = k - p0 < KC ? k - p0 : KC;
			pack_b(pb, b + p0 * rb + j0 * cb, rb, cb, kc, nc);
			for (int64_t i0 = 0; i0 < m; i0 += MC) {
				int64_t mc = m - i0 < MC ? m - i0 : MC;
				pack_a(pa, a + i0 * ra + p0 * ca, ra, ca, mc, kc);
				for (int64_t j = 0; j < nc; j += NR) {
					for (int64_t i = 0; i < mc; i += MR) {
						mul(kc, pa + i * kc, pb + j * kc, acc);
						int64_t h = mc - i < MR ? mc - i : MR, w = nc - j < NR ? nc - j : NR;
						float *to = c + (i0 + i) * ldc + j0 + j;
						for (int64_t r = 0; r < h; r++) {
							for (int64_t s = 0; s < w; s++) to[r * ldc + s] += acc[r * NR + s];
						}
					}
				}
			}
		}
	}
	free(pa);
	free(pb);
}

// cube_round: 1 and 3 let the unit read f32 as HF32 (12 bits of mantissa; 910 has f16 only), 2 as f16.
void cube_round(float *v, int64_t n, int dtype, int64_t cube) {
	if (dtype != DT_F32 || cube == 0) return;
	if (cube == 2) {
		round_f(v, n, DT_F16);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		uint32_t u;
		memcpy(&u, v + i, 4);
		if ((u & 0x7f800000) != 0x7f800000) u = (u + 0x400) & ~0x7ffu;
		memcpy(v + i, &u, 4);
	}
}
