// What a collective computes from the requests of all ranks.
#include <math.h>

#include "hccl.h"

int64_t hccl_size(int dtype) {
	static const int sizes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2};
	return dtype >= 0 && dtype <= HT_BF16 ? sizes[dtype] : 0;
}

static bool differs(message *const *m, int n, char *err, size_t room) {
	for (int i = 1; i < n; i++) {
		const frame *a = &m[0]->f, *b = &m[i]->f;
		const char *what = a->kind != b->kind ? "the operation" : a->dtype != b->dtype ? "the data type" : a->op != b->op ? "the reduction" : a->root != b->root ?
			"the root" : NULL;
		if (!what && a->count != b->count && a->kind != HK_ALL_TO_ALL_V && a->kind != HK_ALL_GATHER_V && a->kind != HK_REDUCE_SCATTER_V) what = "the count";
		if (!what) continue;
		snprintf(err, room, "%s differs: rank 0 has %s #%llu (count %llu, type %d, op %d, root %u), rank %d %s (count %llu, type %d, op %d, root %u)", what,
			hub_names[a->kind],
			(unsigned long long)a->order, (unsigned long long)a->count, a->dtype, a->op, a->root, i, hub_names[b->kind], (unsigned long long)b->count, b->dtype,
				b->op, b->root);
		return true;
	}
	return false;
}

static float load16(const char *p, int dtype, int64_t i) {
	uint16_t v = ((const uint16_t *)p)[i];
	return dtype == HT_F16 ? half_to_float(v) : bf16_to_float(v);
}

#define FOLD(T)                                                                                                    \
	for (int64_t i = lo; i < hi; i++) {                                                                        \
		T a = ((const T *)m[order[0]]->data)[i];                                                           \
		for (int k = 1; k < n; k++) {                                                                      \
			T b = ((const T *)m[order[k]]->data)[i];                                                   \
			a = op == HR_SUM ? (T)(a + b) : op == HR_PROD ? (T)(a * b) : (op == HR_MAX) == (a < b) ? b : a; \
		}                                                                                                  \
		((T *)out)[i] = a;                                                                                 \
	}                                                                                                          \
	break

// fold reduces elements lo to hi, the ranks in the given order. 16-bit floats are summed in f32 and rounded once. A NaN of any rank stays.
static void fold(message *const *m, int n, const int *order, int dtype, int op, char *out, int64_t lo, int64_t hi) {
	switch (dtype) {
	case HT_I8: FOLD(int8_t);
	case HT_U8: FOLD(uint8_t);
	case HT_I16: FOLD(int16_t);
	case HT_I32: FOLD(int32_t);
	case HT_I64: FOLD(int64_t);
	case HT_U64: FOLD(uint64_t);
	case HT_F64: FOLD(double);
	default:
		for (int64_t i = lo; i < hi; i++) {
			float a = dtype == HT_F32 ? ((const float *)m[order[0]]->data)[i] : load16(m[order[0]]->data, dtype, i);
			for (int k = 1; k < n; k++) {
				float b = dtype == HT_F32 ? ((const float *)m[order[k]]->data)[i] : load16(m[order[k]]->data, dtype, i);
				if (op == HR_SUM) {
					a += b;
				} else if (op == HR_PROD) {
					a *= b;
				} else if (isnan(b) || (!isnan(a) && (op == HR_MAX) == (a < b))) {
					a = b;
				}
			}
			if (dtype == HT_F32) {
				((float *)out)[i] = a;
			} else {
				((uint16_t *)out)[i] = dtype == HT_F16 ? float_to_half(a) : float_to_bf16(a);
			}
		}
	}
}

// reduce returns the reduction of all requests. Without determinism, the order of the ranks is another one for each stretch of elements.
static char *reduce(message *const *m, int n, int64_t elements) {
	enum { STRETCH = 512 };
	bool deterministic = true;
	for (int i = 0; i < n; i++) deterministic &= m[i]->f.deterministic != 0;
	char *out = fk_zalloc((size_t)(elements * hccl_size(m[0]->f.dtype)) + 1);
	int *order = fk_zalloc((size_t)n * sizeof *order);
	for (int i = 0; i < n; i++) order[i] = i;
	for (int64_t at = 0; at < elements; at += STRETCH) {
		for (int i = n - 1; i > 0 && !deterministic; i--) {
			fk_acquire();
			int j = (int)(fake_random(&fk_sw.seed) % (uint64_t)(i + 1)), t = order[i];
			fk_release();
			order[i] = order[j];
			order[j] = t;
		}
		fold(m, n, order, m[0]->f.dtype, m[0]->f.op, out, at, at + STRETCH < elements ? at + STRETCH : elements);
	}
	free(order);
	return out;
}

static void give(answer *to, const char *from, uint64_t bytes) {
	to->data = fk_zalloc((size_t)bytes + 1);
	memcpy(to->data, from, (size_t)bytes);
	to->bytes = bytes;
}

static void reductions(message *const *m, int n, answer *out) {
	const frame *f = &m[0]->f;
	int64_t each = hccl_size(f->dtype), elements = (int64_t)m[0]->f.bytes / each;
	char *sum = reduce(m, n, elements);
	uint64_t at = 0;
	for (int r = 0; r < n; r++) {
		uint64_t mine = f->kind == HK_REDUCE_SCATTER_V ? m[0]->meta[r] * (uint64_t)each : f->count * (uint64_t)each;
		switch (f->kind) {
		case HK_ALL_REDUCE: give(&out[r], sum, f->bytes); break;
		case HK_REDUCE:
			if (r == (int)f->root) give(&out[r], sum, f->bytes);
			break;
		default:
			give(&out[r], sum + at, mine);
			at += mine;
		}
	}
	free(sum);
}

static void gather(message *const *m, int n, answer *out) {
	uint64_t all = 0, at = 0;
	for (int i = 0; i < n; i++) all += m[i]->f.bytes;
	char *joined = fk_zalloc((size_t)all + 1);
	for (int i = 0; i < n; i++) {
		memcpy(joined + at, m[i]->data, (size_t)m[i]->f.bytes);
		at += m[i]->f.bytes;
	}
	for (int r = 0; r < n; r++) give(&out[r], joined, all);
	free(joined);
}

// exchange is all-to-all: the numbers of a request are what it sends to each rank, and then what it expects from each.
static bool exchange(message *const *m, int n, answer *out, char *err, size_t room) {
	uint64_t each = (uint64_t)hccl_size(m[0]->f.dtype);
	bool v = m[0]->f.kind == HK_ALL_TO_ALL_V;
	for (int r = 0; r < n; r++) {
		uint64_t all = 0, at = 0;
		for (int i = 0; i < n; i++) {
			uint64_t sent = v ? m[i]->meta[r] : m[i]->f.count;
			if (v && sent != m[r]->meta[n + i]) {
				snprintf(err, room, "rank %d sends %llu to rank %d, which expects %llu", i, (unsigned long long)sent, r, (unsigned long long)m[r]->meta[n + i]);
				return false;
			}
			all += sent * each;
		}
		out[r].data = fk_zalloc((size_t)all + 1);
		out[r].bytes = all;
		for (int i = 0; i < n; i++) {
			uint64_t from = 0, sent = v ? m[i]->meta[r] : m[i]->f.count;
			for (int k = 0; k < r; k++) from += v ? m[i]->meta[k] : m[i]->f.count;
			memcpy(out[r].data + at, m[i]->data + from * each, (size_t)(sent * each));
			at += sent * each;
		}
	}
	return true;
}

// same_meta checks that the numbers of all ranks agree, and with what each sends.
static bool same_meta(message *const *m, int n, char *err, size_t room) {
	for (int i = 0; i < n; i++) {
		if (memcmp(m[i]->meta, m[0]->meta, (size_t)n * 8) == 0) continue;
		snprintf(err, room, "the counts of ranks 0 and %d differ", i);
		return false;
	}
	return true;
}

bool hub_compute(message *const *m, int n, answer *out, char *err, size_t room) {
	const frame *f = &m[0]->f;
	if (differs(m, n, err, room)) return false;
	switch (f->kind) {
	case HK_REDUCE_SCATTER_V:
	case HK_ALL_GATHER_V:
		if (!same_meta(m, n, err, room)) return false;
		if (f->kind == HK_ALL_GATHER_V) {
			gather(m, n, out);
		} else {
			reductions(m, n, out);
		}
		return true;
	case HK_ALL_REDUCE:
	case HK_REDUCE:
	case HK_REDUCE_SCATTER: reductions(m, n, out); return true;
	case HK_ALL_GATHER: gather(m, n, out); return true;
	case HK_BROADCAST:
		for (int r = 0; r < n; r++) {
			if (r != (int)f->root) give(&out[r], m[f->root]->data, m[f->root]->f.bytes);
		}
		return true;
	case HK_SCATTER:
		for (int r = 0; r < n; r++) {
			uint64_t mine = f->count * (uint64_t)hccl_size(f->dtype);
			give(&out[r], m[f->root]->data + (uint64_t)r * mine, mine);
		}
		return true;
	case HK_ALL_TO_ALL:
	case HK_ALL_TO_ALL_V: return exchange(m, n, out, err, room);
	default: return true; // barrier
	}
}
