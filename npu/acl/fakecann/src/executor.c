// Executors: the first phase makes one, the second uses it up, unless it was made repeatable.
#include "rt.h"

static _Thread_local uint64_t latest; // number of this thread's latest first phase
static uint64_t numbers;

// extra is workspace that the fake asks for though its operator needs none, so that callers meet that path.
static int64_t extra(const char *name) {
	unsigned h = 0;
	for (; *name; name++) h = h * 31 + (unsigned char)*name;
	return h % 3 == 0 ? 512 * (int64_t)(1 + h % 7) : 0;
}

static int32_t first(int op, const fk_raw *raw, uint64_t *bytes, void **out) {
	const fk_desc *d = &fk_ops[op];
	char err[300] = "";
	int32_t code;
	fk_context *c = fk_alive(&code);
	if (!c) return code;
	if (!bytes || !out) return fk_error(161001, "%s is null", bytes ? "executor" : "workspaceSize");
	*bytes = 0;
	*out = NULL;
	latest = ++numbers; // a first phase that fails counts, too: what it did to the thread's storage list is unknown
	if (!d->op) return fk_error(561003, "aclnn%s has no kernel in this fake", d->name);
	fk_binding *b = fk_bind(d, raw, &code, err, sizeof err);
	if (!b) return fk_violation(code, "%s", err);
	b->call.deterministic = fk_deterministic(c);
	b->call.soc = fk_sw.soc;
	b->call.cann = fk_sw.version;
	fk_release(); // the check may be long, and sees copies only
	code = d->op->check ? d->op->check(&b->call, err, sizeof err) : 0;
	b->call.ws_bytes = !code && d->op->workspace ? d->op->workspace(&b->call) : 0;
	fk_acquire();
	if (code) {
		fk_unbind(b);
		return fk_error(code, "aclnn%s: %s", d->name, err);
	}
	fk_executor *e = fk_zalloc(sizeof *e);
	e->op = op;
	e->ctx = c;
	e->device = c->device;
	e->thread = pthread_self();
	e->number = latest;
	e->b = b;
	e->workspace = b->call.ws_bytes + extra(d->name);
	for (int i = 0; i < d->n; i++) {
		if (d->codes[i] < C_str && raw[i].p) e->holds[e->held++] = (void *)(uintptr_t)raw[i].p;
	}
	e->handle = fk_handle(K_EXECUTOR, e);
	fk_count.executors++;
	*bytes = (uint64_t)e->workspace;
	*out = e->handle;
	return 0;
}

int32_t fk_phase1(int op, const fk_raw *raw, uint64_t *bytes, void **executor) {
	fk_acquire();
	int32_t code = first(op, raw, bytes, executor);
	fk_release();
	return code;
}

// held_of finds the head of any object that an executor can hold.
static fk_held *held_of(const void *handle) {
	static const enum fk_kind kinds[] = {K_TENSOR, K_SCALAR, K_ARRAY, K_TENSORS, K_SCALARS};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		fk_held *h = fk_object(handle, kinds[i]);
		if (h) return h;
	}
	return NULL;
}

static void end(fk_executor *e) {
	for (int i = 0; e->repeatable && i < e->held; i++) {
		fk_held *h = held_of(e->holds[i]);
		if (h) h->needed--;
	}
	fk_handle_end(e->handle);
	fk_count.executors--;
	fk_count.repeatable -= e->repeatable;
	fk_unbind(e->b);
	free(e);
}

// workspace_ok checks the workspace of the second phase.
static int32_t workspace_checked(const fk_executor *e, const void *ws, uint64_t bytes) {
	const char *name = fk_ops[e->op].name;
	char err[200];
	if (bytes < (uint64_t)e->workspace) return fk_violation(161002, "aclnn%s: workspaceSize is %llu, the first phase said %lld", name,
		(unsigned long long)bytes, (long long)e->workspace);
	if (!e->workspace) return 0;
	if (!ws) return fk_violation(161001, "aclnn%s: workspace is null, it needs %lld bytes", name, (long long)e->workspace);
	if ((uintptr_t)ws % 64) return fk_violation(161002, "aclnn%s: workspace %p is not aligned to 64 bytes", name, ws);
	if (!fk_reach(e->device, ws, (int64_t)bytes, err, sizeof err)) return fk_violation(161002, "aclnn%s: workspace: %s", name, err);
	return 0;
}

static int32_t second(int op, void *ws, uint64_t bytes, void *executor, void *stream) {
	int32_t code;
	fk_stream *s = fk_stream_of(stream, &code);
	if (!s) return code;
	fk_executor *e = fk_object(executor, K_EXECUTOR);
	if (!e) return fk_violation(561103, "executor is %s", fk_handle_is(executor));
	if (e->op != op) return fk_violation(561103, "the executor was made by aclnn%sGetWorkspaceSize", fk_ops[e->op].name);
	if (e->ctx != s->ctx) return fk_violation(161002, "the executor was made on device %d in another context", e->device);
	code = workspace_checked(e, ws, bytes);
	if (!code) code = fk_launch(e, s, e->workspace ? ws : NULL);
	if (!e->repeatable) end(e); // it is used up, whatever came of it
	return code;
}

int32_t fk_phase2(int op, void *workspace, uint64_t bytes, void *executor, void *stream) {
	fk_acquire();
	int32_t code = second(op, workspace, bytes, executor, stream);
	fk_release();
	return code;
}

static fk_executor *executor_of(const void *handle, int32_t *code) {
	fk_executor *e = fk_object(handle, K_EXECUTOR);
	*code = e ? 0 : fk_violation(561103, "executor is %s", fk_handle_is(handle));
	return e;
}

// same_view says whether a copy inside the operator would have the same source and destination.
static bool same_view(const fcall *c) {
	if (strcmp(c->name, "InplaceCopy") != 0) return false;
	const ft *to = c->a[0].t, *from = c->a[1].t;
	return to->base == from->base && to->offset == from->offset;
}

int32_t f_aclSetAclOpExecutorRepeatable(void *handle) {
	int32_t code;
	fk_acquire();
	fk_executor *e = executor_of(handle, &code);
	if (e && (!pthread_equal(e->thread, pthread_self()) || e->number != latest)) {
		fk_violation(561000, "it must follow the executor's first phase (aclnn%s) directly, on the same thread: the real one reads another operator's storage",
			fk_ops[e->op].name);
		abort();
	}
	if (e && e->repeatable) {
		code = fk_violation(561000, "the executor is repeatable already");
	} else if (e && (e->b->call.op->not_repeatable || same_view(&e->b->call))) {
		code = fk_error(561000, "The executor of aclnn%s cannot be reused", fk_ops[e->op].name);
	} else if (e) {
		e->repeatable = true;
		fk_count.repeatable++;
		for (int i = 0; i < e->held; i++) {
			fk_held *h = held_of(e->holds[i]);
			if (h) h->needed++;
		}
	}
	fk_release();
	return code;
}

int32_t f_aclDestroyAclOpExecutor(void *handle) {
	int32_t code;
	fk_acquire();
	fk_executor *e = executor_of(handle, &code);
	if (e) end(e);
	fk_release();
	return code;
}

// is_input says on which side of the setters an argument is; tensors that are updated in place are outputs.
static bool counts(const fk_desc *d, int i, int side) { // side 0: inputs, 1: outputs, 2: both
	bool in = d->codes[i] == C_T, out = d->codes[i] == C_To;
	return side == 0 ? in : side == 1 ? out : in || out;
}

// set_addr gives a tensor of an executor another address. Launches that were enqueued keep theirs.
static int32_t set_addr(fk_executor *e, ft *t, void *base) {
	if ((uintptr_t)base % 32) return fk_violation(161002, "address %p is not aligned to 32 bytes", base);
	if (!e->repeatable) return fk_violation(161002, "the executor is not repeatable");
	int64_t i = t - e->b->t;
	if (e->b->refs > 1) {
		fk_binding *own = fk_binding_copy(&fk_ops[e->op], e->b);
		fk_unbind(e->b);
		e->b = own;
	}
	e->b->t[i].base = base;
	return 0;
}

static int32_t set(void *handle, uint64_t index, void *tensor, void *base, int side) {
	int32_t code;
	fk_acquire();
	fk_executor *e = executor_of(handle, &code);
	if (e && !fk_object(tensor, K_TENSOR)) {
		code = fk_violation(161002, "tensor is %s", fk_handle_is(tensor));
	} else if (e) {
		const fk_desc *d = &fk_ops[e->op];
		ft *t = NULL;
		uint64_t k = 0;
		for (int i = 0; i < d->n; i++) {
			if (counts(d, i, side) && k++ == index) t = e->b->call.a[i].t;
		}
		code = t ? set_addr(e, t, base) : fk_error(161002, "aclnn%s: tensor %llu %s", d->name, (unsigned long long)index, index < k ?
			"was null in the first phase" : "does not exist");
	}
	fk_release();
	return code;
}

int32_t f_aclSetInputTensorAddr(void *e, uint64_t i, void *t, void *base) { return set(e, i, t, base, 0); }

int32_t f_aclSetOutputTensorAddr(void *e, uint64_t i, void *t, void *base) { return set(e, i, t, base, 1); }

int32_t f_aclSetTensorAddr(void *e, uint64_t i, void *t, void *base) { return set(e, i, t, base, 2); }

static int32_t set_dynamic(void *handle, uint64_t ir, uint64_t rel, void *list, void *base, int code_of) {
	int32_t code;
	fk_acquire();
	fk_executor *e = executor_of(handle, &code);
	if (e && !fk_object(list, K_TENSORS)) {
		code = fk_violation(161002, "the list is %s", fk_handle_is(list));
	} else if (e) {
		const fk_desc *d = &fk_ops[e->op];
		ft *t = NULL;
		uint64_t k = 0;
		for (int i = 0; i < d->n; i++) {
			bool is_list = d->codes[i] == code_of, is_tensor = d->codes[i] == (code_of == C_TL ? C_T : C_To);
			if (!is_list && !is_tensor) continue;
			const flist *l = is_list && k == ir ? e->b->call.a[i].l : NULL;
			if (l && rel < (uint64_t)l->n) t = l->t[rel];
			k++;
		}
		code = t ? set_addr(e, t, base) : fk_error(161002, "aclnn%s: list %llu has no tensor %llu", d->name, (unsigned long long)ir, (unsigned long long)rel);
	}
	fk_release();
	return code;
}

int32_t f_aclSetDynamicInputTensorAddr(void *e, uint64_t ir, uint64_t rel, void *list, void *base) { return set_dynamic(e, ir, rel, list, base, C_TL); }

int32_t f_aclSetDynamicOutputTensorAddr(void *e, uint64_t ir, uint64_t rel, void *list, void *base) { return set_dynamic(e, ir, rel, list, base, C_TLo); }
