// Copies and fills. From page-locked memory a copy happens when the stream gets to it; other host memory makes the call wait.
#include "rt.h"

enum { H2H = 0, H2D = 1, D2H = 2, D2D = 3, DEFAULT = 4, H2BUF2D = 5, INNER = 6, INTER = 7 };

typedef struct copy {
	fk_task t;
	void *to;
	const void *from;
	int64_t bytes;
	bool to_device, from_device, fill;
	int value;
} copy;

// where_is classifies an address. A freed block is not host memory: false, with a text.
static bool where_is(const void *p, bool *device, bool *pinned) {
	fk_block *b = fk_find(p);
	*device = b && b->place == FK_DEVICE;
	*pinned = b && b->place == FK_PINNED;
	return !b || b->place != FK_FREED;
}

static bool inside(const void *p, int64_t bytes) {
	fk_block *b = fk_find(p);
	return !b || (uintptr_t)p + (uint64_t)bytes <= b->addr + b->bytes;
}

// run moves the bytes. Addresses are looked at here, when the stream gets to the task: what was freed meanwhile is an exception of the device.
static int32_t run(fk_task *t) {
	copy *c = (copy *)t;
	int device = t->stream->ctx->device;
	fk_acquire();
	char *to = c->to_device ? fk_reach(device, c->to, c->bytes, t->why, sizeof t->why) : c->to;
	const char *from = c->fill ? to : c->from_device ? fk_reach(device, c->from, c->bytes, t->why, sizeof t->why) : c->from;
	bool to_ok, from_ok = true, d, p;
	to_ok = c->to_device || where_is(c->to, &d, &p);
	if (!c->fill && !c->from_device) from_ok = where_is(c->from, &d, &p);
	if (!to_ok || !from_ok) {
		snprintf(t->why, sizeof t->why, "page-locked memory at %p was freed", to_ok ? c->from : c->to);
		fk_violation(507015, "%s: %s", t->name, t->why);
	}
	fk_release();
	if (!to || !from || !to_ok || !from_ok) return 507015;
	if (c->fill) {
		memset(to, c->value, (size_t)c->bytes);
	} else {
		memmove(to, from, (size_t)c->bytes);
	}
	return 0;
}

static void plain_free(fk_task *t) { free(t); }

static int32_t kind_checked(copy *c, int32_t kind, bool *pageable, bool async) {
	bool to_pinned, from_pinned;
	if (!where_is(c->to, &c->to_device, &to_pinned) || !where_is(c->from, &c->from_device, &from_pinned)) return fk_violation(107000, "an address was freed");
	*pageable = (!c->to_device && !to_pinned) || (!c->from_device && !from_pinned);
	bool h2d = c->to_device && !c->from_device, d2h = !c->to_device && c->from_device, d2d = c->to_device && c->from_device;
	bool fits = kind == DEFAULT || (kind == H2H && !c->to_device && !c->from_device) || ((kind == H2D || kind == H2BUF2D) && h2d) || (kind == D2H && d2h) ||
		((kind == D2D || kind == INNER || kind == INTER) && d2d);
	if (kind < 0 || kind > INTER) return fk_error(107000, "kind %d does not exist", kind);
	if (!fits) return fk_violation(107000, "kind %d does not fit: dst is %s memory, src %s memory", kind, c->to_device ? "device" : "host", c->from_device ?
		"device" : "host");
	if (async && !c->to_device && !c->from_device) return fk_error(207000, "an asynchronous copy from host to host is not supported");
	if (!inside(c->to, c->bytes) || !inside(c->from, c->bytes)) return fk_violation(107000, "%lld bytes go beyond their block", (long long)c->bytes);
	return 0;
}

static int32_t checked(void *to, uint64_t max, const void *from, uint64_t bytes) {
	if (!to || !from) return fk_error(107000, "%s is null", to ? "src" : "dst");
	if (!bytes) return fk_error(107000, "count is 0");
	if (bytes > max) return fk_violation(107000, "count %llu is larger than destMax %llu", (unsigned long long)bytes, (unsigned long long)max);
	return 0;
}

// sync_task runs a task in the caller's thread, as the synchronous functions do: they do not wait for streams. Lock held.
static int32_t sync_task(fk_context *c, fk_task *t) {
	const copy *m = (copy *)t;
	fk_order_host_access(t->name, m->to, m->bytes, true);
	if (!m->fill) fk_order_host_access(t->name, m->from, m->bytes, false);
	t->stream = c->stream;
	t->inject = fk_late();
	fk_release();
	int32_t code = fk_run_task(t);
	fk_acquire();
	if (!code) return 0;
	if (code == 507015) fk_die(c, code, t->why);
	return fk_error(code, "%s", t->why);
}

int32_t f_aclrtMemcpy(void *to, uint64_t max, void *from, uint64_t bytes, int32_t kind) {
	int32_t code;
	bool pageable;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	copy m = {.t = {.name = "memcpy", .run = run}, .to = to, .from = from, .bytes = (int64_t)bytes};
	if (c && !(code = checked(to, max, from, bytes)) && !(code = kind_checked(&m, kind, &pageable, false))) code = sync_task(c, &m.t);
	fk_release();
	return code;
}

// ordered notes what an asynchronous task touches. Lock held.
static void ordered(fk_stream *s, const copy *c) {
	fk_order_begin(s);
	fk_order_access(s, c->t.name, c->to, c->bytes, true);
	if (!c->fill) fk_order_access(s, c->t.name, c->from, c->bytes, false);
}

int32_t f_aclrtMemcpyAsync(void *to, uint64_t max, void *from, uint64_t bytes, int32_t kind, void *stream) {
	int32_t code;
	bool pageable;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	copy m = {.t = {.name = "memcpy", .run = run, .free = plain_free}, .to = to, .from = from, .bytes = (int64_t)bytes};
	if (s && !(code = checked(to, max, from, bytes)) && !(code = kind_checked(&m, kind, &pageable, true))) {
		if (pageable && s->capture) {
			code = fk_violation(107000, "a copy of memory that is not page-locked cannot be recorded");
		} else {
			copy *q = fk_zalloc(sizeof *q);
			*q = m;
			ordered(s, q);
			fk_enqueue(s, &q->t);
			if (pageable) {
				fk_count.pageable_copies++;
				fk_drain(s, s->issued, -1);
				fk_order_host_stream(s);
				code = s->ctx->dead ? fk_error(s->ctx->dead, "%s", s->ctx->why) : 0;
			}
		}
	}
	fk_release();
	return code;
}

static int32_t fill_checked(copy *m, uint64_t max, uint64_t bytes) {
	bool pinned;
	if (!m->to) return fk_error(107000, "devPtr is null");
	if (!bytes) return fk_error(107000, "count is 0");
	if (bytes > max) return fk_violation(107000, "count %llu is larger than maxCount %llu", (unsigned long long)bytes, (unsigned long long)max);
	if (!where_is(m->to, &m->to_device, &pinned)) return fk_violation(107000, "the address was freed");
	if (!m->to_device && !pinned) return fk_violation(107000, "%p is no memory of the device", m->to);
	if (!inside(m->to, m->bytes)) return fk_violation(107000, "%llu bytes go beyond their block", (unsigned long long)bytes);
	return 0;
}

int32_t f_aclrtMemset(void *to, uint64_t max, int32_t value, uint64_t bytes) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	copy m = {.t = {.name = "memset", .run = run}, .to = to, .bytes = (int64_t)bytes, .fill = true, .value = value};
	if (c && !(code = fill_checked(&m, max, bytes))) code = sync_task(c, &m.t);
	fk_release();
	return code;
}

int32_t f_aclrtMemsetAsync(void *to, uint64_t max, int32_t value, uint64_t bytes, void *stream) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	copy m = {.t = {.name = "memset", .run = run, .free = plain_free}, .to = to, .bytes = (int64_t)bytes, .fill = true, .value = value};
	if (s && !(code = fill_checked(&m, max, bytes))) {
		copy *q = fk_zalloc(sizeof *q);
		*q = m;
		ordered(s, q);
		fk_enqueue(s, &q->t);
	}
	fk_release();
	return code;
}
