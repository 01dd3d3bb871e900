// Host callbacks as 8.1 has them: they run in a thread that subscribed to the stream and asks for them.
#include "rt.h"

typedef struct callback {
	fk_task t;
	void (*fn)(void *);
	void *user;
	bool blocks, ran;
	int refs; // the task, and the list
	uint64_t reporter;
	struct callback *next;
} callback;

static callback *ready; // oldest first

static void let_go(callback *c) {
	if (!--c->refs) free(c);
}

static int32_t run(fk_task *t) {
	callback *c = (callback *)t;
	int32_t code = 0;
	fk_acquire();
	c->reporter = t->stream->reporter;
	if (!c->reporter) {
		snprintf(t->why, sizeof t->why, "no thread subscribed to the stream's callbacks");
		code = fk_violation(107000, "%s", t->why);
	} else {
		c->ran = false;
		c->refs++;
		c->next = NULL;
		callback **p = &ready;
		while (*p) p = &(*p)->next;
		*p = c;
		fk_broadcast();
		while (c->blocks && !c->ran && !fk_dropped(t->stream)) fk_wait(-1);
	}
	fk_release();
	return code;
}

static void task_free(fk_task *t) { let_go((callback *)t); }

int32_t f_aclrtLaunchCallback(void *fn, void *user, int32_t type, void *stream) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	if (s && (!fn || type < 0 || type > 1)) {
		code = fk_error(107000, "fn is %p, blockType %d", fn, type);
	} else if (s) {
		callback *c = fk_zalloc(sizeof *c);
		c->t = (fk_task){.name = "callback", .run = run, .free = task_free};
		memcpy(&c->fn, &fn, sizeof fn);
		c->user = user;
		c->blocks = type == 1;
		c->refs = 1;
		fk_enqueue(s, &c->t);
	}
	fk_release();
	return code;
}

static int32_t subscribe(uint64_t thread, void *stream, bool on) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	if (s && (on ? s->reporter != 0 : s->reporter != thread)) {
		code = fk_error(107000, "thread %llu %s", (unsigned long long)thread, on ? "comes second: the stream has a thread" : "did not subscribe");
	} else if (s) {
		s->reporter = on ? thread : 0;
	}
	fk_release();
	return code;
}

int32_t f_aclrtSubscribeReport(uint64_t thread, void *stream) { return subscribe(thread, stream, true); }

int32_t f_aclrtUnSubscribeReport(uint64_t thread, void *stream) { return subscribe(thread, stream, false); }

int32_t f_aclrtProcessReport(int32_t ms) {
	uint64_t self = (uint64_t)pthread_self();
	int64_t until = fk_until(ms);
	fk_acquire();
	for (;;) {
		callback **p = &ready;
		while (*p && (*p)->reporter != self) p = &(*p)->next;
		callback *c = *p;
		if (c) {
			*p = c->next;
			fk_release();
			c->fn(c->user);
			fk_acquire();
			c->ran = true;
			fk_broadcast();
			let_go(c);
			fk_release();
			return 0;
		}
		if (!fk_wait(until)) {
			int32_t code = fk_error(107019, "no callback within %d ms", ms);
			fk_release();
			return code;
		}
	}
}
