// Order of accesses. Two tasks on different streams that touch the same memory, one of them writing, need an event or a synchronisation of the host
// between them.
// This is decided when tasks are enqueued, from what the program asked for, not from what happened to run first: so it is the same in every run.
//
// Each stream has a clock that counts its tasks and holds the latest count that it knows of every other stream. The host has one: its threads are taken to be
// ordered among themselves. Tasks of graphs are not looked at.
#include "rt.h"

struct fk_access {
	uintptr_t lo, hi;
	uint64_t tick;
	int stream;
	bool write;
	const char *name; // of a task: a constant
};

static fk_clock host; // of all threads of the program
static const int host_id = 0;
static int ids;

int fk_order_id(void) { return ++ids; }

static uint64_t get(const fk_clock *c, int id) { return id < c->n ? c->v[id] : 0; }

static void grow(fk_clock *c, int n) {
	if (c->n >= n) return;
	c->v = realloc(c->v, (size_t)n * sizeof *c->v);
	if (!c->v) abort();
	memset(c->v + c->n, 0, (size_t)(n - c->n) * sizeof *c->v);
	c->n = n;
}

static void join(fk_clock *to, const fk_clock *from) {
	grow(to, from->n);
	for (int i = 0; i < from->n; i++) {
		if (from->v[i] > to->v[i]) to->v[i] = from->v[i];
	}
}

static void tick(fk_clock *c, int id) {
	grow(c, id + 1);
	c->v[id]++;
}

void fk_clock_free(fk_clock *c) {
	free(c->v);
	*c = (fk_clock){0, NULL};
}

void fk_order_begin(fk_stream *s) {
	if (!fk_sw.order || s->capture) return;
	join(&s->clock, &host);
	tick(&s->clock, s->id);
}

void fk_order_record(fk_stream *s, fk_event *e) {
	if (!fk_sw.order || s->capture) return;
	fk_order_begin(s);
	fk_clock_free(&e->clock);
	join(&e->clock, &s->clock);
}

void fk_order_wait(fk_stream *s, const fk_event *e) {
	if (!fk_sw.order || s->capture) return;
	fk_order_begin(s);
	join(&s->clock, &e->clock);
}

void fk_order_host_event(const fk_event *e) {
	if (fk_sw.order) join(&host, &e->clock);
}

void fk_order_host_stream(const fk_stream *s) {
	if (fk_sw.order) join(&host, &s->clock);
}

// conflict tells of two accesses that nothing orders.
static void conflict(const fk_block *b, const fk_access *old, const fk_access *a) {
	uintptr_t lo = old->lo > a->lo ? old->lo : a->lo, hi = old->hi < a->hi ? old->hi : a->hi;
	fk_violation(0, "%s %s bytes %llu to %llu of a block of %zu which %s %s on another stream, and no event or synchronisation lies between them", a->name,
		a->write ? "writes" : "reads", (unsigned long long)(lo - b->addr), (unsigned long long)(hi - b->addr), b->bytes, old->name, old->write ?
			"writes" : "reads");
}

// look compares an access with those before it, forgets those that it covers, and keeps it.
static void look(const fk_clock *c, fk_block *b, const fk_access *a) {
	int kept = 0;
	for (int i = 0; i < b->accesses_n; i++) {
		fk_access *o = &b->accesses[i];
		bool ordered = o->stream == a->stream || get(c, o->stream) >= o->tick, meets = o->lo < a->hi && a->lo < o->hi;
		if (meets && !ordered && (o->write || a->write)) {
			conflict(b, o, a);
			ordered = true; // once is enough
		}
		bool covered = a->lo <= o->lo && o->hi <= a->hi && ordered && (a->write || !o->write);
		if (!covered) b->accesses[kept++] = *o;
	}
	b->accesses_n = kept;
	if (kept == b->accesses_room) {
		b->accesses_room = kept ? 2 * kept : 16;
		b->accesses = realloc(b->accesses, (size_t)b->accesses_room * sizeof *b->accesses);
		if (!b->accesses) abort();
	}
	b->accesses[b->accesses_n++] = *a;
}

static void access_of(const fk_clock *c, int id, const char *name, const void *p, int64_t bytes, bool write) {
	fk_block *b = bytes > 0 ? fk_find(p) : NULL;
	if (!b || b->place == FK_FREED) return; // the task itself will say so
	fk_access a = {(uintptr_t)p, (uintptr_t)p + (uint64_t)bytes, get(c, id), id, write, name};
	look(c, b, &a);
}

void fk_order_access(fk_stream *s, const char *name, const void *p, int64_t bytes, bool write) {
	if (fk_sw.order && !s->capture) access_of(&s->clock, s->id, name, p, bytes, write);
}

void fk_order_host_access(const char *name, const void *p, int64_t bytes, bool write) {
	if (!fk_sw.order) return;
	tick(&host, host_id);
	access_of(&host, host_id, name, p, bytes, write);
}

void fk_order_tensor(fk_stream *s, const char *name, const ft *t, bool write) {
	if (!fk_sw.order || s->capture || !ft_numel(t)) return;
	int64_t last = t->offset, each = dtype_size(t->dtype);
	for (int i = 0; i < t->nd; i++) last += (t->dims[i] - 1) * t->strides[i];
	access_of(&s->clock, s->id, name, t->base + t->offset * each, (last + 1 - t->offset) * each, write);
}

// fk_order_free checks that the host knows that all tasks that touch a block have ended.
void fk_order_free(fk_block *b, bool checked) {
	for (int i = 0; fk_sw.order && i < b->accesses_n; i++) {
		const fk_access *o = &b->accesses[i];
		if (checked && get(&host, o->stream) < o->tick) {
			fk_violation(0, "the block of %zu bytes is freed, and nothing says that %s, which %s it, has ended", b->bytes, o->name, o->write ? "writes" : "reads");
			break;
		}
	}
	free(b->accesses);
	b->accesses = NULL;
	b->accesses_n = b->accesses_room = 0;
}
