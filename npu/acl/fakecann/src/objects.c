// Tensors, scalars, arrays and lists of nnopbase. They are handles: one that was destroyed is always found.
#include "rt.h"

static void begin(fk_held *h, enum fk_kind kind, void *object, int64_t *counter) {
	h->handle = fk_handle(kind, object);
	++*counter;
}

// view_ok checks that a view lies in its storage.
static const char *view_error(const ft *t) {
	static _Thread_local char why[160];
	int64_t last = t->offset;
	for (int i = 0; i < t->nd; i++) {
		if (t->dims[i] < 0) return "a dim is negative";
		if (t->strides[i] < 0) return "a stride is negative";
		if (t->dims[i] == 0) return NULL; // empty
		last += (t->dims[i] - 1) * t->strides[i];
	}
	if (t->offset < 0) return "the offset is negative";
	if (last < t->storage) return NULL;
	snprintf(why, sizeof why, "the view's last element is %lld, the storage has %lld", (long long)last, (long long)t->storage);
	return why;
}

static bool format_ok(int format) {
	static const int known[] = {-1, 0, 1, 2, 3, 4, 12, 16, 27, 29, 30, 32, 33, 35, 47};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i] == format) return true;
	}
	return false;
}

static void *tensor_new(const int64_t *dims, uint64_t n, int32_t dtype, const int64_t *strides, int64_t offset, int32_t format, const int64_t *storage,
	uint64_t ns, void *base) {
	const char *wrong = NULL;
	ft t = {.nd = (int)n, .offset = offset, .dtype = dtype, .format = format, .storage = 1, .base = base};
	if (n > FAKE_DIMS || (n && !dims) || (ns && !storage)) {
		wrong = n > FAKE_DIMS ? "it has more than 8 dims" : "viewDims or storageDims is null";
	} else if (!dtype_size(dtype)) {
		wrong = "the dtype does not exist";
	} else if (!format_ok(format)) {
		wrong = "the format does not exist";
	} else if ((uintptr_t)base % 32) {
		wrong = "the address is not aligned to 32 bytes";
	}
	for (uint64_t i = 0; !wrong && i < ns; i++) t.storage *= storage[i];
	int64_t stride = 1;
	for (int i = (int)n - 1; !wrong && i >= 0; i--) {
		t.dims[i] = dims[i];
		t.strides[i] = strides ? strides[i] : stride;
		stride *= dims[i];
	}
	if (!wrong) wrong = view_error(&t);
	if (wrong) {
		fk_violation(161002, "%s (%llu dims, dtype %d, format %d, address %p)", wrong, (unsigned long long)n, dtype, format, base);
		return NULL;
	}
	fk_tensor *o = fk_zalloc(sizeof *o);
	o->t = t;
	begin(&o->held, K_TENSOR, o, &fk_count.tensors);
	return o->held.handle;
}

void *f_aclCreateTensor(void *dims, uint64_t n, int32_t dtype, void *strides, int64_t offset, int32_t format, void *storage, uint64_t ns, void *base) {
	fk_acquire();
	void *h = tensor_new(dims, n, dtype, strides, offset, format, storage, ns, base);
	fk_release();
	return h;
}

void *f_aclCreateScalar(void *value, int32_t dtype) {
	void *h = NULL;
	fk_acquire();
	if (!value || !dtype_size(dtype)) {
		fk_violation(161002, "value is %p, dtype %d", value, dtype);
	} else {
		fk_scalar *o = fk_zalloc(sizeof *o);
		int64_t bits[1] = {0};
		memcpy(bits, value, (size_t)dtype_size(dtype));
		o->s.dtype = dtype;
		o->s.f = value_load((const char *)bits, dtype, 0);
		o->s.i = dtype == DT_I64 || dtype == DT_U64 ? bits[0] : dtype == DT_BOOL ? o->s.f != 0 : o->s.f >= -9e18 && o->s.f <= 9e18 ? (int64_t)o->s.f : 0;
		begin(&o->held, K_SCALAR, o, &fk_count.scalars);
		h = o->held.handle;
	}
	fk_release();
	return h;
}

static void *array_new(const void *values, uint64_t n, int code, size_t each) {
	void *h = NULL;
	fk_acquire();
	if (n && !values) {
		fk_violation(161001, "value is null");
	} else {
		fk_array *o = fk_zalloc(sizeof *o);
		void *copy = fk_zalloc((size_t)n * each);
		if (n) memcpy(copy, values, (size_t)n * each);
		o->code = code;
		o->a = (farray){.n = (int64_t)n, .i = code == C_IA ? copy : NULL, .f = code == C_FA ? copy : NULL, .b = code == C_BA ? copy : NULL};
		begin(&o->held, K_ARRAY, o, &fk_count.arrays);
		h = o->held.handle;
	}
	fk_release();
	return h;
}

void *f_aclCreateIntArray(void *v, uint64_t n) { return array_new(v, n, C_IA, 8); }

void *f_aclCreateFloatArray(void *v, uint64_t n) { return array_new(v, n, C_FA, 4); }

void *f_aclCreateBoolArray(void *v, uint64_t n) { return array_new(v, n, C_BA, 1); }

static void *list_new(void *const *items, uint64_t n, enum fk_kind of, enum fk_kind kind) {
	void *h = NULL;
	bool ok = items || !n;
	fk_acquire();
	for (uint64_t i = 0; ok && i < n; i++) {
		fk_held *o = fk_object(items[i], of);
		if (items[i] && (!o || o->owner)) {
			fk_violation(161002, "item %llu is %s%s", (unsigned long long)i, fk_handle_is(items[i]), o ? " of another list" : "");
			ok = false;
		}
	}
	if (ok) {
		fk_list *l = fk_zalloc(sizeof *l);
		l->n = (int64_t)n;
		l->items = fk_zalloc((size_t)n * sizeof *l->items);
		begin(&l->held, kind, l, &fk_count.lists);
		for (uint64_t i = 0; i < n; i++) {
			fk_held *o = fk_object(items[i], of);
			l->items[i] = items[i];
			if (o) o->owner = l->held.handle;
		}
		h = l->held.handle;
	}
	fk_release();
	return h;
}

void *f_aclCreateTensorList(void *items, uint64_t n) { return list_new(items, n, K_TENSOR, K_TENSORS); }

void *f_aclCreateScalarList(void *items, uint64_t n) { return list_new(items, n, K_SCALAR, K_SCALARS); }

// gone refuses to destroy what is not there or still needed; NULL, with the code.
static void *gone(void *handle, enum fk_kind kind, int32_t *code) {
	fk_held *o = fk_object(handle, kind);
	*code = 0;
	if (!o) {
		*code = fk_violation(161002, "the argument is %s", fk_handle_is(handle));
	} else if (o->owner) {
		*code = fk_violation(161002, "it belongs to a list, which destroys it");
		return NULL;
	} else if (o->needed) {
		fk_violation(0, "%d repeatable executors still need %s", o->needed, fk_handle_is(handle));
	}
	return o;
}

static int32_t destroy(void *handle, enum fk_kind kind, int64_t *counter) {
	int32_t code;
	fk_acquire();
	void *o = gone(handle, kind, &code);
	if (o) {
		fk_handle_end(handle);
		--*counter;
		free(o);
	}
	fk_release();
	return code;
}

int32_t f_aclDestroyTensor(void *h) { return destroy(h, K_TENSOR, &fk_count.tensors); }

int32_t f_aclDestroyScalar(void *h) { return destroy(h, K_SCALAR, &fk_count.scalars); }

static int32_t destroy_array(void *h, int code_of) {
	int32_t code;
	fk_acquire();
	fk_array *o = gone(h, K_ARRAY, &code);
	if (o && o->code != code_of) {
		code = fk_violation(161002, "it is an array of another type");
	} else if (o) {
		fk_handle_end(h);
		fk_count.arrays--;
		free((void *)(uintptr_t)(o->a.i ? (const void *)o->a.i : o->a.f ? (const void *)o->a.f : o->a.b));
		free(o);
	}
	fk_release();
	return code;
}

int32_t f_aclDestroyIntArray(void *h) { return destroy_array(h, C_IA); }

int32_t f_aclDestroyFloatArray(void *h) { return destroy_array(h, C_FA); }

int32_t f_aclDestroyBoolArray(void *h) { return destroy_array(h, C_BA); }

static int32_t destroy_list(void *h, enum fk_kind of, enum fk_kind kind, int64_t *counter) {
	int32_t code;
	fk_acquire();
	fk_list *l = gone(h, kind, &code);
	if (l) {
		for (int64_t i = 0; i < l->n; i++) {
			fk_held *o = fk_object(l->items[i], of);
			if (!o) continue;
			fk_handle_end(l->items[i]);
			--*counter;
			free(o);
		}
		fk_handle_end(h);
		fk_count.lists--;
		free(l->items);
		free(l);
	}
	fk_release();
	return code;
}

int32_t f_aclDestroyTensorList(void *h) { return destroy_list(h, K_TENSOR, K_TENSORS, &fk_count.tensors); }

int32_t f_aclDestroyScalarList(void *h) { return destroy_list(h, K_SCALAR, K_SCALARS, &fk_count.scalars); }

int32_t f_aclSetRawTensorAddr(void *h, void *base) {
	int32_t code = 0;
	fk_acquire();
	fk_tensor *o = fk_object(h, K_TENSOR);
	if (!o) {
		code = fk_violation(161002, "tensor is %s", fk_handle_is(h));
	} else if ((uintptr_t)base % 32) {
		code = fk_violation(161002, "address %p is not aligned to 32 bytes", base);
	} else {
		o->t.base = base;
	}
	fk_release();
	return code;
}

int32_t f_aclGetRawTensorAddr(void *h, void *out) {
	int32_t code = 0;
	fk_acquire();
	fk_tensor *o = fk_object(h, K_TENSOR);
	if (!o || !out) {
		code = fk_violation(161002, "tensor is %s, addr %p", fk_handle_is(h), out);
	} else {
		*(void **)out = o->t.base;
	}
	fk_release();
	return code;
}
