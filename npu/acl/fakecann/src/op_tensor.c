// Loops over strided tensors, typed rows, packed copies.
#include "op.h"

#include <math.h>

_Atomic int64_t fake_out_of_range;

bool broadcast(const int64_t *a, int an, const int64_t *b, int bn, int64_t *to, int *n) {
	*n = an > bn ? an : bn;
	for (int i = 1; i <= *n; i++) {
		int64_t x = i <= an ? a[an - i] : 1, y = i <= bn ? b[bn - i] : 1;
		if (x != y && x != 1 && y != 1) return false;
		to[*n - i] = x == 1 ? y : x;
	}
	return true;
}

static int int_rank(int dt) {
	switch (dt) {
	case DT_BOOL: return 0;
	case DT_U8: return 1;
	case DT_I8: return 2;
	case DT_I16: return 3;
	case DT_I32: return 4;
	default: return 5;
	}
}

int promote(int a, int b) {
	if (a == b) return a;
	if (a == DT_F64 || b == DT_F64) return DT_F64;
	if (is_float(a) && is_float(b)) return DT_F32;
	if (is_float(a)) return a;
	if (is_float(b)) return b;
	if ((a == DT_U8 && b == DT_I8) || (a == DT_I8 && b == DT_U8)) return DT_I16;
	return int_rank(a) > int_rank(b) ? a : b;
}

int promote_scalar(int t, int s) {
	if (is_float(t)) return t;
	if (is_float(s)) return DT_F32;
	return t == DT_BOOL ? s : t;
}

void loop_open(loop *l, const int64_t *dims, int nd) {
	l->nd = nd;
	l->nt = 0;
	memcpy(l->dims, dims, (size_t)nd * sizeof *dims);
}

void loop_add(loop *l, const ft *t) {
	int k = l->nt++;
	l->size[k] = dtype_size(t->dtype);
	l->p[k] = t->base + t->offset * l->size[k];
	for (int i = 0; i < l->nd; i++) {
		int j = i - (l->nd - t->nd);
		l->st[k][i] = j < 0 || t->dims[j] == 1 ? 0 : t->strides[j];
	}
}

// merge joins neighbouring dims that all tensors walk as one.
static void merge(loop *l) {
	int64_t dims[FAKE_DIMS], st[LOOP_TENSORS][FAKE_DIMS];
	int nd = 0;
	for (int i = 0; i < l->nd; i++) {
		if (l->dims[i] == 1) continue;
		bool join = nd > 0;
		for (int k = 0; join && k < l->nt; k++) join = st[k][nd - 1] == l->st[k][i] * l->dims[i];
		if (join) {
			dims[nd - 1] *= l->dims[i];
		} else {
			dims[nd++] = l->dims[i];
		}
		for (int k = 0; k < l->nt; k++) st[k][nd - 1] = l->st[k][i];
	}
	if (nd == 0) {
		dims[nd++] = 1;
		for (int k = 0; k < l->nt; k++) st[k][0] = 0;
	}
	l->nd = nd;
	memcpy(l->dims, dims, sizeof dims);
	memcpy(l->st, st, sizeof st);
}

void loop_run(loop *l, loop_row row, void *ctx) {
	for (int i = 0; i < l->nd; i++) {
		if (l->dims[i] == 0) return;
	}
	merge(l);
	int last = l->nd - 1;
	int64_t at[FAKE_DIMS] = {0}, st[LOOP_TENSORS];
	char *p[LOOP_TENSORS], *q[LOOP_TENSORS];
	memcpy(p, l->p, sizeof p);
	for (int k = 0; k < l->nt; k++) st[k] = l->st[k][last];
	for (;;) {
		for (int64_t done = 0; done < l->dims[last]; done += LOOP_CHUNK) {
			int64_t n = l->dims[last] - done < LOOP_CHUNK ? l->dims[last] - done : LOOP_CHUNK;
			for (int k = 0; k < l->nt; k++) q[k] = p[k] + done * st[k] * l->size[k];
			row(ctx, q, st, n);
		}
		int i = last - 1;
		for (; i >= 0; i--) {
			for (int k = 0; k < l->nt; k++) p[k] += l->st[k][i] * l->size[k];
			if (++at[i] < l->dims[i]) break;
			for (int k = 0; k < l->nt; k++) p[k] -= l->st[k][i] * l->size[k] * l->dims[i];
			at[i] = 0;
		}
		if (i < 0) return;
	}
}

static inline float from_bf16(uint16_t h) {
	union {
		uint32_t u;
		float f;
	} x = {(uint32_t)h << 16};
	return x.f;
}

static inline uint16_t to_bf16(float f) {
	union {
		float f;
		uint32_t u;
	} x = {f};
	uint32_t r = (x.u + 0x7fff + (x.u >> 16 & 1)) >> 16;
	return (uint16_t)((x.u & 0x7fffffff) > 0x7f800000 ? (x.u >> 16 | 0x40) : r);
}

typedef union word {
	uint32_t u;
	float f;
} word;

static inline float from_f16(uint16_t h) {
	word x = {(uint32_t)(h & 0x7fff) << 13}, small = {113u << 23};
	uint32_t exp = x.u & 0x0f800000;
	x.u += 112u << 23;
	if (exp == 0x0f800000) {
		x.u += 112u << 23; // infinite or NaN
	} else if (exp == 0) { // subnormal
		x.u += 1u << 23;
		x.f -= small.f;
	}
	x.u |= (uint32_t)(h & 0x8000) << 16;
	return x.f;
}

static inline uint16_t to_f16(float f) {
	word x = {.f = f}, half = {.u = 126u << 23};
	uint32_t sign = x.u & 0x80000000, r;
	x.u ^= sign;
	if (x.u >= 0x47800000) {
		r = x.u > 0x7f800000 ? 0x7e00 : 0x7c00;
	} else if (x.u < 0x38800000) { // subnormal: the addition rounds to a multiple of 2^-24
		x.f += half.f;
		r = x.u - half.u;
	} else {
		r = (x.u - 0x38000000 + 0xfff + (x.u >> 13 & 1)) >> 13;
	}
	return (uint16_t)(r | sign >> 16);
}

#define LOAD(type, expr) \
	{ \
		const type *s = (const type *)p; \
		for (int64_t k = 0; k < n; k++) { \
			const type x = s[k * st]; \
			to[k] = expr; \
		} \
		break; \
	}

void load_f(float *to, const char *p, int dtype, int64_t st, int64_t n) {
	switch (dtype) {
	case DT_F32:
		if (st == 1) {
			memcpy(to, p, (size_t)n * 4);
			break;
		}
		LOAD(float, x)
	case DT_BF16: LOAD(uint16_t, from_bf16(x))
	case DT_F16: LOAD(uint16_t, from_f16(x))
	case DT_BOOL: LOAD(uint8_t, (float)(x != 0))
	default:
		for (int64_t k = 0; k < n; k++) to[k] = (float)value_load(p, dtype, k * st);
	}
}

void load_d(double *to, const char *p, int dtype, int64_t st, int64_t n) {
	switch (dtype) {
	case DT_F64: LOAD(double, x)
	case DT_F32: LOAD(float, (double)x)
	case DT_BF16: LOAD(uint16_t, (double)from_bf16(x))
	case DT_F16: LOAD(uint16_t, (double)from_f16(x))
	default:
		for (int64_t k = 0; k < n; k++) to[k] = value_load(p, dtype, k * st);
	}
}

void load_i(int64_t *to, const char *p, int dtype, int64_t st, int64_t n) {
	switch (dtype) {
	case DT_I64: LOAD(int64_t, x)
	case DT_U64: LOAD(uint64_t, (int64_t)x)
	case DT_I32: LOAD(int32_t, x)
	case DT_BOOL: LOAD(uint8_t, x != 0)
	default:
		for (int64_t k = 0; k < n; k++) value_store((char *)to, DT_I64, k, value_load(p, dtype, k * st));
	}
}

#define STORE(type, expr) \
	{ \
		type *d = (type *)p; \
		for (int64_t k = 0; k < n; k++) d[k * st] = expr; \
		break; \
	}

void store_f(char *p, int dtype, int64_t st, int64_t n, const float *v) {
	switch (dtype) {
	case DT_F32:
		if (st == 1) {
			memcpy(p, v, (size_t)n * 4);
			break;
		}
		STORE(float, v[k])
	case DT_BF16: STORE(uint16_t, to_bf16(v[k]))
	case DT_F16: STORE(uint16_t, to_f16(v[k]))
	case DT_BOOL: STORE(uint8_t, v[k] != 0)
	default:
		for (int64_t k = 0; k < n; k++) value_store(p, dtype, k * st, v[k]);
	}
}

void store_d(char *p, int dtype, int64_t st, int64_t n, const double *v) {
	switch (dtype) {
	case DT_F64: STORE(double, v[k])
	case DT_F32: STORE(float, (float)v[k])
	default:
		for (int64_t k = 0; k < n; k++) value_store(p, dtype, k * st, v[k]);
	}
}

void store_i(char *p, int dtype, int64_t st, int64_t n, const int64_t *v) {
	switch (dtype) {
	case DT_I64: STORE(int64_t, v[k])
	case DT_U64: STORE(uint64_t, (uint64_t)v[k])
	case DT_I32: STORE(int32_t, (int32_t)v[k])
	case DT_U32: STORE(uint32_t, (uint32_t)v[k])
	case DT_I16: STORE(int16_t, (int16_t)v[k])
	case DT_I8: STORE(int8_t, (int8_t)v[k])
	case DT_U8: STORE(uint8_t, (uint8_t)v[k])
	case DT_BOOL: STORE(uint8_t, v[k] != 0)
	case DT_F32: STORE(float, (float)v[k])
	default:
		for (int64_t k = 0; k < n; k++) value_store(p, dtype, k * st, (double)v[k]);
	}
}

void round_f(float *v, int64_t n, int dtype) {
	if (dtype == DT_BF16) {
		for (int64_t k = 0; k < n; k++) v[k] = from_bf16(to_bf16(v[k]));
	} else if (dtype == DT_F16) {
		for (int64_t k = 0; k < n; k++) v[k] = from_f16(to_f16(v[k]));
	}
}

void *room(int64_t count, int64_t size) {
	void *p = calloc((size_t)(count > 0 ? count : 1), (size_t)size);
	if (!p) abort(); // the host is out of memory: nothing a test could learn from going on
	return p;
}

typedef struct packing {
	int dtype;
	char *at; // the next plain element
	int kind; // 'f', 'd', 'i' or 'r'
	bool out; // from plain memory into the tensor
} packing;

static void raw_row(char *to, int64_t ts, const char *from, int64_t fs, int64_t size, int64_t n) {
	if (ts == 1 && fs == 1) {
		memcpy(to, from, (size_t)(n * size));
		return;
	}
	for (int64_t k = 0; k < n; k++) memcpy(to + k * ts * size, from + k * fs * size, (size_t)size);
}

static void pack_row(void *ctx, char *const *p, const int64_t *st, int64_t n) {
	packing *q = ctx;
	int64_t size = dtype_size(q->dtype);
	switch (q->kind) {
	case 'f':
		if (q->out) store_f(p[0], q->dtype, st[0], n, (float *)q->at);
		else load_f((float *)q->at, p[0], q->dtype, st[0], n);
		q->at += n * 4;
		break;
	case 'd':
		if (q->out) store_d(p[0], q->dtype, st[0], n, (double *)q->at);
		else load_d((double *)q->at, p[0], q->dtype, st[0], n);
		q->at += n * 8;
		break;
	case 'i':
		if (q->out) store_i(p[0], q->dtype, st[0], n, (int64_t *)q->at);
		else load_i((int64_t *)q->at, p[0], q->dtype, st[0], n);
		q->at += n * 8;
		break;
	default:
		if (q->out) raw_row(p[0], st[0], q->at, 1, size, n);
		else raw_row(q->at, 1, p[0], st[0], size, n);
		q->at += n * size;
	}
}

static void pack(const ft *t, void *plain, int kind, bool out) {
	loop l;
	packing q = {t->dtype, plain, kind, out};
	loop_open(&l, t->dims, t->nd);
	loop_add(&l, t);
	loop_run(&l, pack_row, &q);
}

static void *packed(const ft *t, int kind, int64_t size) {
	void *p = malloc((size_t)(ft_numel(t) * size + 64));
	if (!p) abort();
	pack(t, p, kind, false);
	return p;
}

float *pack_f(const ft *t) { return packed(t, 'f', 4); }
double *pack_d(const ft *t) { return packed(t, 'd', 8); }
int64_t *pack_i(const ft *t) { return packed(t, 'i', 8); }
char *pack_raw(const ft *t) { return packed(t, 'r', dtype_size(t->dtype)); }
void unpack_f(const ft *t, const float *v) { pack(t, (void *)v, 'f', true); }
void unpack_d(const ft *t, const double *v) { pack(t, (void *)v, 'd', true); }
void unpack_i(const ft *t, const int64_t *v) { pack(t, (void *)v, 'i', true); }
void unpack_raw(const ft *t, const char *v) { pack(t, (void *)v, 'r', true); }

void shuffle(uint64_t *state, int64_t *v, int64_t n) {
	for (int64_t i = n - 1; i > 0; i--) {
		int64_t j = (int64_t)(fake_random(state) % (uint64_t)(i + 1)), t = v[i];
		v[i] = v[j];
		v[j] = t;
	}
}

bool open_order(const fcall *c) { return c->op->nondeterministic && !c->deterministic; }

double sum_parts(const fcall *c, uint64_t salt, const double *part, int64_t n) {
	if (!open_order(c)) {
		double s = 0;
		for (int64_t i = 0; i < n; i++) s += part[i];
		return s;
	}
	int64_t *order = room(n, sizeof *order);
	for (int64_t i = 0; i < n; i++) order[i] = i;
	uint64_t state = c->seed ^ (salt + 1) * 0x9e3779b97f4a7c15;
	shuffle(&state, order, n);
	float s = 0;
	for (int64_t i = 0; i < n; i++) s += (float)part[order[i]];
	free(order);
	return s;
}

int64_t ws_of(const ft *t) { return t ? (ft_numel(t) * 4 + 511) / 512 * 512 + 16384 : 16384; }
