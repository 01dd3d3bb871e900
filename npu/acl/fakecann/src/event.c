// Events: marks in a stream, with the time at which the stream came by. An event may be recorded again; a wait means the latest record before it.
#include "rt.h"

enum { SYNC = 1, TIME_LINE = 8, KNOWN = 0x7b };

typedef struct mark {
	fk_task t;
	fk_event *e;
	uint64_t number;
} mark;

static void let_go(fk_event *e) {
	if (--e->refs || !e->destroyed) return;
	fk_clock_free(&e->clock);
	free(e);
}

static void mark_free(fk_task *t) {
	let_go(((mark *)t)->e);
	free(t);
}

static int32_t record_run(fk_task *t) {
	mark *m = (mark *)t;
	fk_acquire();
	if (m->e->done < m->number) m->e->done = m->number;
	m->e->time = fk_now();
	fk_broadcast();
	fk_release();
	return 0;
}

static int32_t wait_run(fk_task *t) {
	mark *m = (mark *)t;
	int32_t code = 0;
	if (t->replayed) return 0; // tasks of a graph run in the order in which they were recorded
	fk_acquire();
	int64_t until = fk_wait_timeout ? fk_until(fk_wait_timeout * 1000LL) : -1;
	while (m->e->done < m->number && !fk_dropped(t->stream) && !code) {
		if (!fk_wait(until)) {
			snprintf(t->why, sizeof t->why, "the event did not come within %d s", fk_wait_timeout);
			code = 107019;
		}
	}
	fk_release();
	return code;
}

// enqueue_mark gives a record or a wait to a stream. Lock held.
static void enqueue_mark(fk_stream *s, fk_event *e, bool record) {
	mark *m = fk_zalloc(sizeof *m);
	m->t = (fk_task){.name = record ? "record" : "wait", .run = record ? record_run : wait_run, .free = mark_free, .always = record};
	m->e = e;
	m->number = e->recorded;
	if (record) {
		fk_order_record(s, e);
	} else {
		fk_order_wait(s, e);
	}
	e->refs++;
	fk_enqueue(s, &m->t);
}

static fk_event *event_of(const void *handle, int32_t *code) {
	fk_context *c = fk_alive(code);
	if (!c) return NULL;
	fk_event *e = fk_object(handle, K_EVENT);
	if (!e) *code = fk_violation(107017, "event is %s", fk_handle_is(handle));
	return e;
}

static int32_t create(void *out, uint32_t how) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && (!out || how & ~(uint32_t)KNOWN || !how)) {
		code = fk_error(107000, "event is %p, flag %#x", out, how);
	} else if (c && fk_count.events >= 65536) {
		code = fk_error(207007, "the device has no more events");
	} else if (c) {
		fk_event *e = fk_zalloc(sizeof *e);
		e->ctx = c;
		e->flags = how;
		*(void **)out = e->handle = fk_handle(K_EVENT, e);
		fk_count.events++;
	}
	fk_release();
	return code;
}

int32_t f_aclrtCreateEventWithFlag(void *out, uint32_t how) { return create(out, how); }

int32_t f_aclrtCreateEventExWithFlag(void *out, uint32_t how) { return create(out, how); }

int32_t f_aclrtDestroyEvent(void *handle) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_need(&code);
	fk_event *e = fk_object(handle, K_EVENT);
	if (c && !e) {
		code = fk_violation(107017, "event is %s", fk_handle_is(handle));
	} else if (c) {
		fk_handle_end(handle);
		fk_count.events--;
		e->destroyed = true;
		e->refs++;
		let_go(e);
		if (c->dead) code = fk_error(c->dead, "%s", c->why);
	}
	fk_release();
	return code;
}

int32_t f_aclrtRecordEvent(void *handle, void *stream) {
	int32_t code;
	fk_acquire();
	fk_event *e = event_of(handle, &code);
	fk_stream *s = e ? fk_stream_of(stream, &code) : NULL;
	if (s && e->ctx != s->ctx) {
		code = fk_violation(107003, "the event belongs to another context");
	} else if (s) {
		e->recorded++;
		e->graph = s->capture;
		enqueue_mark(s, e, true);
	}
	fk_release();
	return code;
}

int32_t f_aclrtStreamWaitEvent(void *stream, void *handle) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	fk_event *e = s ? event_of(handle, &code) : NULL;
	if (e && !(e->flags & SYNC)) {
		code = fk_violation(107000, "the event was created without the flag SYNC");
	} else if (e && !e->recorded) {
		code = fk_violation(107000, "the event was never recorded"); // the real one is said to pass at once: not to be relied on
	} else if (e) {
		if (e->graph && !s->capture) s->capture = e->graph; // the stream joins the recording
		enqueue_mark(s, e, false);
	}
	fk_release();
	return code;
}

int32_t f_aclrtQueryEventStatus(void *handle, void *status) {
	int32_t code;
	fk_acquire();
	fk_event *e = event_of(handle, &code);
	if (e && !status) {
		code = fk_error(107000, "status is null");
	} else if (e && !e->recorded) {
		code = fk_violation(107000, "the event was never recorded");
	} else if (e) {
		*(int32_t *)status = e->done >= e->recorded; // 1 = complete
		if (e->done >= e->recorded) fk_order_host_event(e);
	}
	fk_release();
	return code;
}

int32_t f_aclrtSynchronizeEventWithTimeout(void *handle, int32_t ms) {
	int32_t code;
	fk_acquire();
	fk_event *e = event_of(handle, &code);
	if (e && !e->recorded) {
		code = fk_violation(107000, "the event was never recorded");
	} else if (e) {
		uint64_t number = e->recorded;
		fk_context *c = e->ctx;
		int64_t until = fk_until(ms);
		bool in_time = true;
		e->refs++;
		while (e->done < number && !c->dead && in_time) in_time = fk_wait(until) || e->done >= number;
		let_go(e);
		fk_guards(c->device);
		if (c->dead) {
			code = fk_error(c->dead, "%s", c->why);
		} else if (!in_time) {
			code = fk_error(507047, "Event synchronize timeout: %d ms", ms);
		} else if ((e = fk_object(handle, K_EVENT)) && e->recorded == number) {
			fk_order_host_event(e);
		}
	}
	fk_release();
	return code;
}

int32_t f_aclrtSynchronizeEvent(void *e) { return f_aclrtSynchronizeEventWithTimeout(e, -1); }

// stamp checks that an event has a time.
static int32_t stamp(const fk_event *e) {
	if (!(e->flags & TIME_LINE)) return fk_violation(107006, "the event was created without the flag TIME_LINE");
	if (!e->recorded || e->done < e->recorded) return fk_error(107006, "the event has no timestamp: it %s", e->recorded ?
		"is not complete" : "was never recorded");
	return 0;
}

int32_t f_aclrtEventGetTimestamp(void *handle, void *out) {
	int32_t code;
	fk_acquire();
	fk_event *e = event_of(handle, &code);
	if (e && !out) {
		code = fk_error(107000, "timestamp is null");
	} else if (e && !(code = stamp(e))) {
		*(uint64_t *)out = (uint64_t)e->time;
	}
	fk_release();
	return code;
}

int32_t f_aclrtEventElapsedTime(void *ms, void *start, void *end) {
	int32_t code;
	fk_acquire();
	fk_event *a = event_of(start, &code), *b = a ? event_of(end, &code) : NULL;
	if (b && !ms) {
		code = fk_error(107000, "ms is null");
	} else if (b && !(code = stamp(a)) && !(code = stamp(b))) {
		if (b->time < a->time) {
			code = fk_error(107007, "the end is before the start");
		} else {
			*(float *)ms = (float)((double)(b->time - a->time) / 1000);
		}
	}
	fk_release();
	return code;
}
