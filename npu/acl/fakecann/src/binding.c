// Bindings: copies of an operator's arguments. They outlive what the caller gave, as the real executors do.
#include "rt.h"

static fk_binding *binding_new(int tensors, int scalars, int arrays, int lists, int slists, size_t bytes, size_t pointers) {
	fk_binding *b = fk_zalloc(sizeof *b);
	size_t need = (size_t)tensors * sizeof(ft) + (size_t)scalars * sizeof(fscalar) + (size_t)arrays * sizeof(farray) + (size_t)lists * sizeof(flist) +
		(size_t)slists * sizeof(fslist) + pointers * sizeof(void *) + bytes + 64;
	char *p = b->memory = fk_zalloc(need);
	b->refs = 1;
	b->t = (ft *)p;
	b->s = (fscalar *)(p += (size_t)tensors * sizeof(ft));
	b->a = (farray *)(p += (size_t)scalars * sizeof(fscalar));
	b->l = (flist *)(p += (size_t)arrays * sizeof(farray));
	b->sl = (fslist *)(p += (size_t)lists * sizeof(flist));
	b->pointers = (void **)(p += (size_t)slists * sizeof(fslist));
	b->bytes = p + pointers * sizeof(void *);
	return b;
}

void fk_unbind(fk_binding *b) {
	if (--b->refs) return;
	if (b->parent) {
		fk_unbind(b->parent);
		free(b->t);
	}
	free(b->memory);
	free(b);
}

typedef struct sizes {
	int t, s, a, l, sl;
	size_t bytes, pointers;
} sizes;

static const enum fk_kind kind_of[] = {[C_T] = K_TENSOR, [C_To] = K_TENSOR, [C_S] = K_SCALAR, [C_IA] = K_ARRAY, [C_FA] = K_ARRAY, [C_BA] = K_ARRAY,
	[C_TL] = K_TENSORS, [C_TLo] = K_TENSORS, [C_SL] = K_SCALARS};

// measure finds the objects behind the handles, and how much memory their copies need.
static int32_t measure(const fk_desc *d, const fk_raw *raw, void **objects, sizes *z, char *err, size_t n) {
	for (int i = 0; i < d->n; i++) {
		int code = d->codes[i];
		objects[i] = NULL;
		if (code > C_str || !raw[i].p) continue;
		if (code == C_str) {
			z->bytes += strlen(raw[i].p) + 1;
			continue;
		}
		void *o = objects[i] = fk_object(raw[i].p, kind_of[code]);
		if (!o || (kind_of[code] == K_ARRAY && ((fk_array *)o)->code != code)) {
			snprintf(err, n, "%s is %s%s", d->names[i], fk_handle_is(raw[i].p), o ? " of another type" : "");
			return 161002;
		}
		switch (code) {
		case C_T:
		case C_To: z->t++; break;
		case C_S: z->s++; break;
		case C_TL:
		case C_TLo:
			z->l++;
			z->t += (int)((fk_list *)o)->n;
			z->pointers += (size_t)((fk_list *)o)->n;
			break;
		case C_SL:
			z->sl++;
			z->s += (int)((fk_list *)o)->n;
			z->pointers += (size_t)((fk_list *)o)->n;
			break;
		default:
			z->a++;
			z->bytes += (size_t)((fk_array *)o)->a.n * 8 + 8;
		}
	}
	return 0;
}

static ft *add_tensor(fk_binding *b, const fk_tensor *t) {
	b->t[b->tensors] = t->t;
	return &b->t[b->tensors++];
}

static const fscalar *add_scalar(fk_binding *b, const fk_scalar *s) {
	b->s[b->scalars] = s->s;
	return &b->s[b->scalars++];
}

static const farray *add_array(fk_binding *b, const fk_array *a) {
	farray *to = &b->a[b->arrays++];
	size_t each = a->code == C_IA ? 8 : a->code == C_FA ? 4 : 1, bytes = (size_t)a->a.n * each;
	const void *from = a->code == C_IA ? (const void *)a->a.i : a->code == C_FA ? (const void *)a->a.f : a->a.b;
	b->bytes += -(uintptr_t)b->bytes % 8;
	memcpy(b->bytes, from, bytes);
	*to = (farray){.n = a->a.n, .i = a->code == C_IA ? (void *)b->bytes : NULL, .f = a->code == C_FA ? (void *)b->bytes : NULL, .b = a->code == C_BA ?
		(void *)b->bytes : NULL};
	b->bytes += bytes;
	return to;
}

static farg add(fk_binding *b, int code, const fk_raw *raw, void *o) {
	farg a = {.i = 0};
	switch (code) {
	case C_T:
	case C_To: a.t = o ? add_tensor(b, o) : NULL; return a;
	case C_S: a.s = o ? add_scalar(b, o) : NULL; return a;
	case C_IA:
	case C_FA:
	case C_BA: a.a = o ? add_array(b, o) : NULL; return a;
	case C_f32:
	case C_f64: a.f = raw->f; return a;
	default: a.i = raw->i; return a;
	case C_str:
		if (!raw->p) return a;
		a.str = strcpy(b->bytes, raw->p);
		b->bytes += strlen(raw->p) + 1;
		return a;
	case C_TL:
	case C_TLo:
		if (!o) return a;
		{
			fk_list *l = o;
			flist *to = &b->l[b->lists++];
			*to = (flist){l->n, (ft **)b->pointers};
			b->pointers += l->n;
			for (int64_t i = 0; i < l->n; i++) {
				fk_tensor *t = fk_object(l->items[i], K_TENSOR);
				to->t[i] = t ? add_tensor(b, t) : NULL;
			}
			a.l = to;
		}
		return a;
	case C_SL:
		if (!o) return a;
		{
			fk_list *l = o;
			fslist *to = &b->sl[b->slists++];
			*to = (fslist){l->n, (const fscalar **)b->pointers};
			b->pointers += l->n;
			for (int64_t i = 0; i < l->n; i++) {
				fk_scalar *s = fk_object(l->items[i], K_SCALAR);
				to->s[i] = s ? add_scalar(b, s) : NULL;
			}
			a.sl = to;
		}
		return a;
	}
}

fk_binding *fk_bind(const fk_desc *d, const fk_raw *raw, int32_t *code, char *err, size_t n) {
	void *objects[FAKE_ARGS];
	sizes z = {0};
	*code = measure(d, raw, objects, &z, err, n);
	if (*code) return NULL;
	fk_binding *b = binding_new(z.t, z.s, z.a, z.l, z.sl, z.bytes, z.pointers);
	b->call.name = d->name;
	b->call.op = d->op;
	b->call.n = d->n;
	for (int i = 0; i < d->n; i++) b->call.a[i] = add(b, d->codes[i], &raw[i], objects[i]);
	return b;
}

// fk_call_on makes a call whose tensors are others: those of a binding with new addresses. The lists are made anew in memory that the caller frees.
void *fk_call_on(const fk_desc *d, const fk_binding *b, ft *t, fcall *call) {
	size_t pointers = 0;
	for (int i = 0; i < d->n; i++) {
		if ((d->codes[i] == C_TL || d->codes[i] == C_TLo) && b->call.a[i].l) pointers += (size_t)b->call.a[i].l->n;
	}
	char *memory = fk_zalloc((size_t)b->lists * sizeof(flist) + pointers * sizeof(ft *));
	flist *lists = (flist *)memory;
	ft **next = (ft **)(memory + (size_t)b->lists * sizeof(flist));
	*call = b->call;
	for (int i = 0; i < d->n; i++) {
		const farg *a = &b->call.a[i];
		if ((d->codes[i] == C_T || d->codes[i] == C_To) && a->t) {
			call->a[i].t = t + (a->t - b->t);
		} else if ((d->codes[i] == C_TL || d->codes[i] == C_TLo) && a->l) {
			*lists = (flist){a->l->n, next};
			for (int64_t k = 0; k < a->l->n; k++) next[k] = a->l->t[k] ? t + (a->l->t[k] - b->t) : NULL;
			next += a->l->n;
			call->a[i].l = lists++;
		}
	}
	return memory;
}

// fk_binding_copy is a binding with tensors of its own, for new addresses; the rest is shared with the old one, which it keeps.
fk_binding *fk_binding_copy(const fk_desc *d, fk_binding *b) {
	fk_binding *c = fk_zalloc(sizeof *c);
	c->refs = 1;
	c->parent = b->parent ? b->parent : b;
	c->parent->refs++;
	c->tensors = b->tensors;
	c->lists = b->lists;
	c->t = fk_zalloc((size_t)b->tensors * sizeof(ft));
	memcpy(c->t, b->t, (size_t)b->tensors * sizeof(ft));
	c->memory = fk_call_on(d, b, c->t, &c->call);
	return c;
}
