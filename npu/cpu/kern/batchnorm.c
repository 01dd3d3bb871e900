//go:build cgo && linux && (amd64 || arm64)

#define KERN_SRC "batchnorm.per_isa.h"
#include "batchnorm.h"
#include "isa.h"

TABLE(bn_fwd);
TABLE(bn_bwd);
TABLE(bn_infer);

// Note [past]: an output of so many bytes does not fit into a cache, so its next reader gets it from memory in any case, and stores past the caches save
// reading the memory that they overwrite. A smaller one is still cached when the next convolution reads it, which otherwise loses what batch norm gains.
int64_t kern_bn_past = (int64_t)32 << 20;

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

bn_cut bn_cut_of(const kern_cmd *c) {
	int64_t n = c->n[0], ch = c->n[1], hw = c->n[2];
	bn_cut t = {.layout = (int)c->n[3], .c = ch, .m = n * hw};
	if (t.layout == KERN_ROWS) t.groups = 1, t.width = ch, t.segments = 1, t.rows = n * hw;
	else t.groups = ch / t.layout, t.width = t.layout, t.segments = n, t.rows = hw;
	// Pieces are small enough to be summed in float32, and large enough that their sums (8 bytes a channel) are small compared to the rows; there
	// are 64 or more if possible, to keep that many threads busy.
	int64_t least = t.width == 1 ? 1024 : 96, most = t.width == 1 ? 8192 : 512, pieces = 1;
	while (t.rows / pieces > most || (pieces * t.segments * t.groups < 64 && t.rows / (pieces * 2) >= least)) pieces *= 2;
	t.cut = (t.rows + pieces - 1) / pieces;
	t.pieces = (t.rows + t.cut - 1) / t.cut;
	t.items = t.segments * t.pieces;
	return t;
}

int64_t bn_workspace(const kern_cmd *c) {
	bn_cut t = bn_cut_of(c);
	return t.groups * t.items * 2 * t.width * 4 + 5 * (t.c + 16) * 4;
}

static void both(void *ctx, int64_t lo, int64_t hi) {
	bn_pass *p = ctx;
	for (int64_t g = lo; g < hi; g++) {
		for (int64_t i = 0; i < p->t.items; i++) p->first(p, g, i);
		p->merge(p, g, 0, p->t.width);
		// Backwards: the data read last is still in the cache.
		for (int64_t i = p->t.items - 1; i >= 0; i--) p->second(p, g, i);
	}
}

// Each pass begins where the data are that the last one has left in the cache. Before forward, that is the convolution, which wrote x from its beginning.
// Backward writes dx where dy is, and ends at the beginning, which the next convolution reads first.
static void walk(const bn_pass *p, int64_t lo, int64_t hi, int back, void (*fn)(const bn_pass *p, int64_t g, int64_t i)) {
	for (int64_t k = lo; k < hi; k++) {
		int64_t i = back ? lo + hi - 1 - k : k;
		fn(p, i / p->t.items, i % p->t.items);
	}
}

static void first(void *ctx, int64_t lo, int64_t hi) {
	const bn_pass *p = ctx;
	walk(p, lo, hi, p->merge == bn_merge_fwd, p->first);
}

static void merge(void *ctx, int64_t lo, int64_t hi) {
	bn_pass *p = ctx;
	int64_t w = p->t.width;
	for (int64_t c = lo * 16; c < min64(hi * 16, p->t.c);) {
		int64_t end = min64(min64(hi * 16, p->t.c), (c / w + 1) * w);
		p->merge(p, c / w, c % w, end - c / w * w);
		c = end;
	}
}

static void second(void *ctx, int64_t lo, int64_t hi) {
	const bn_pass *p = ctx;
	walk(p, lo, hi, p->merge == bn_merge_bwd, p->second);
}

void bn_two_pass(bn_pass *p, int nthreads) {
	p->t = bn_cut_of(p->cmd);
	p->sums = p->cmd->ws;
	float *par = p->sums + p->t.groups * p->t.items * 2 * p->t.width;
	for (int i = 0; i < 5; i++) p->par[i] = par + i * (p->t.c + 16);
	if (p->cmd->flags & BN_OWN)
		for (int64_t ch = 0; ch < p->t.c; ch++) {
			void **v = p->cmd->p;
			bn_factors(((float *)v[2])[ch], ((float *)v[3])[ch], ((float *)v[4])[ch], ((float *)v[5])[ch], p->par[3] + ch, p->par[4] + ch);
		}
	int64_t size = p->cmd->dt == KERN_BF16 ? 2 : 4;
	p->past = p->merge == bn_merge_fwd && p->t.c * p->t.m * size >= kern_bn_past;
	// A group is a small part of the tensor, so that its second pass finds it in the cache. Worthwhile if the groups occupy the threads evenly.
	if (p->t.groups > 1 && (p->t.groups % nthreads == 0 || p->t.groups >= 8 * nthreads)) {
		kern_for(nthreads, p->t.groups, p->t.m * p->t.width, both, p);
		return;
	}
	kern_for(nthreads, p->t.groups * p->t.items, p->t.cut * p->t.width, first, p);
	kern_for(nthreads, (p->t.c + 15) / 16, 16 * p->t.items, merge, p);
	kern_for(nthreads, p->t.groups * p->t.items, p->t.cut * p->t.width, second, p);
}

static int64_t item_rows(const bn_cut *t, int64_t i) {
	int64_t rows;
	bn_item(t, 0, i, &rows);
	return rows;
}

// Four channels at once: two vectors of the baseline instruction set, so that sums have the same bits in every build.
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double wide __attribute__((vector_size(32), aligned(8), may_alias));
#define FOUR(p) __builtin_convertvector(*(const four *)(p), wide)
#define WIDE(p) (*(wide *)(p))

// Items hold mean and sum of squared differences from it. They are merged as Chan, Golub and LeVeque do (STAN-CS-79-773).
void bn_merge_fwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1) {
	const bn_cut *t = &p->t;
	kern_cmd *c = p->cmd;
	const float *gamma = c->p[1], *beta = c->p[2], *rm = c->p[3], *rv = c->p[4];
	float *mean = c->p[7], *rstd = c->p[8], *rm2 = c->p[9], *rv2 = c->p[10];
	double m = (double)t->m, eps = c->f[0], momentum = c->f[1];
	for (; c0 < c1; c0 += 64) {
		int64_t w = min64(64, c1 - c0);
		double mu[64], sq[64];
		for (int64_t j = 0; j < w; j++) mu[j] = sq[j] = 0;
		for (int64_t i = 0; i < t->items; i++) {
			const float *s = bn_sums(t, p->sums, g, i) + c0;
			double rows = (double)item_rows(t, i);
			int64_t j = 0;
			for (; j + 4 <= w; j += 4) WIDE(mu + j) += rows * FOUR(s + j);
			for (; j < w; j++) mu[j] += rows * s[j];
		}
		for (int64_t j = 0; j < w; j++) mu[j] /= m;
		for (int64_t i = 0; i < t->items; i++) {
			const float *s = bn_sums(t, p->sums, g, i) + c0;
			double rows = (double)item_rows(t, i);
			int64_t j = 0;
			for (; j + 4 <= w; j += 4) {
				wide d = FOUR(s + j) - WIDE(mu + j);
				WIDE(sq + j) += FOUR(s + t->width + j) + rows * d * d;
			}
			for (; j < w; j++) sq[j] += s[t->width + j] + rows * (s[j] - mu[j]) * (s[j] - mu[j]);
		}
		for (int64_t j = 0; j < w; j++) {
			int64_t ch = g * t->width + c0 + j;
			double r = 1 / sqrt(sq[j] / m + eps);
			double new_mean = (1 - momentum) * rm[ch] + momentum * mu[j], new_var = (1 - momentum) * rv[ch] + momentum * sq[j] / (m - 1);
			bn_factors(gamma[ch], beta[ch], (float)mu[j], (float)r, &p->par[0][ch], &p->par[1][ch]);
			if (mean) mean[ch] = (float)mu[j];
			if (rstd) rstd[ch] = (float)r;
			if (rm2) rm2[ch] = (float)new_mean;
			if (rv2) rv2[ch] = (float)new_var;
		}
	}
}

// Items hold Σ g and Σ g·(x-mean). dx = k·g + b·x + a.
void bn_merge_bwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1) {
	const bn_cut *t = &p->t;
	kern_cmd *c = p->cmd;
	const float *gamma = c->p[2], *mean = c->p[4], *rstd = c->p[5];
	float *dgamma = c->p[9], *dbeta = c->p[10];
	double m = (double)t->m;
	for (; c0 < c1; c0 += 64) {
		int64_t w = min64(64, c1 - c0);
		double sum[64], dot[64];
		for (int64_t j = 0; j < w; j++) sum[j] = dot[j] = 0;
		for (int64_t i = 0; i < t->items; i++) {
			const float *s = bn_sums(t, p->sums, g, i) + c0;
			int64_t j = 0;
			for (; j + 4 <= w; j += 4) WIDE(sum + j) += FOUR(s + j), WIDE(dot + j) += FOUR(s + t->width + j);
			for (; j < w; j++) sum[j] += s[j], dot[j] += s[t->width + j];
		}
		for (int64_t j = 0; j < w; j++) {
			int64_t ch = g * t->width + c0 + j;
			double r = rstd[ch], k = gamma[ch] * r, b = -k * r * r * dot[j] / m;
			p->par[0][ch] = (float)k;
			p->par[1][ch] = (float)b;
			p->par[2][ch] = (float)(-k * sum[j] / m - b * mean[ch]);
			if (dgamma) dgamma[ch] = (float)(dot[j] * r);
			if (dbeta) dbeta[ch] = (float)sum[j];
		}
	}
}
