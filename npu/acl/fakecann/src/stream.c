// Streams: a queue of tasks and a thread that runs them in order.
#include "rt.h"

fk_stream *fk_streams;

static bool fatal(int32_t code) { return code >= 507000 && code < 508000 && code != 507046 && code != 507047; }

bool fk_dropped(const fk_stream *s) { return s->aborted || s->quit || s->ctx->dead; }

void fk_last(fk_task *t) {
	int64_t rest = t->least - (fk_now() - t->start);
	if (rest > 0) fk_sleep(rest);
	t->least = 0;
}

int32_t fk_run_task(fk_task *t) {
	fk_acquire();
	t->start = fk_now();
	t->least = fk_delay(t->name);
	if (fk_sw.jitter) t->least += (int64_t)(fake_random(&fk_sw.seed) % 2000);
	fk_release();
	int32_t code = t->inject;
	if (code) {
		snprintf(t->why, sizeof t->why, "injected by FAKE_CANN_INJECT");
	} else {
		code = t->run(t);
	}
	fk_last(t);
	return code;
}

void fk_task_end(fk_task *t) {
	if (t->free) t->free(t);
}

// finish books the end of a task. Lock held.
static void finish(fk_stream *s, fk_task *t, int32_t code) {
	if (code) {
		char why[FK_WHY + 64];
		snprintf(why, sizeof why, "%s: %.*s", t->name, FK_WHY - 1, t->why);
		if (!s->error) {
			s->error = code;
			snprintf(s->why, sizeof s->why, "%.*s", FK_WHY - 1, why);
		}
		if (fatal(code)) fk_die(s->ctx, code, s->why);
	}
	s->done++;
	fk_count.tasks++;
	fk_broadcast();
}

static bool skipped(const fk_stream *s, const fk_task *t) {
	if (t->always) return false;
	return s->ctx->dead || s->aborted || (s->stop_on_failure && s->error);
}

static void *work(void *arg) {
	fk_stream *s = arg;
	fk_acquire();
	for (;;) {
		while (!s->head && !s->quit) {
			s->aborted = false;
			pthread_cond_wait(&s->wake, fk_mutex());
		}
		fk_task *t = s->head;
		if (!t) break;
		s->head = t->next;
		if (!s->head) s->tail = NULL;
		int32_t code = 0;
		if (!skipped(s, t)) {
			fk_release();
			code = fk_run_task(t);
			fk_acquire();
		}
		finish(s, t, code);
		fk_task_end(t);
	}
	fk_release();
	return NULL;
}

fk_stream *fk_stream_new(fk_context *c, int32_t *code) {
	int n = 0;
	for (fk_stream *s = fk_streams; s; s = s->next) n += s->ctx->device == c->device;
	if (n >= 1984) {
		*code = fk_error(207008, "the device has no more streams: %d", n);
		return NULL;
	}
	fk_stream *s = fk_zalloc(sizeof *s);
	s->ctx = c;
	s->handle = fk_handle(K_STREAM, s);
	s->id = fk_order_id();
	pthread_cond_init(&s->wake, NULL);
	s->next = fk_streams;
	fk_streams = s;
	fk_count.streams++;
	if (pthread_create(&s->thread, NULL, work, s)) abort();
	*code = 0;
	return s;
}

void fk_stream_end(fk_stream *s, bool force) {
	if (force) {
		s->aborted = true;
		fk_broadcast();
	}
	fk_drain(s, s->issued, -1);
	fk_order_host_stream(s);
	s->quit = true;
	pthread_cond_signal(&s->wake);
	fk_handle_end(s->handle);
	for (fk_stream **p = &fk_streams; *p; p = &(*p)->next) {
		if (*p == s) {
			*p = s->next;
			break;
		}
	}
	fk_count.streams--;
	fk_release();
	pthread_join(s->thread, NULL);
	fk_acquire();
	pthread_cond_destroy(&s->wake);
	fk_clock_free(&s->clock);
	free(s);
}

fk_stream *fk_stream_of(const void *handle, int32_t *code) {
	fk_context *c = fk_alive(code);
	if (!c) return NULL;
	if (!handle) return c->stream;
	fk_stream *s = fk_object(handle, K_STREAM);
	if (!s) {
		*code = fk_violation(107017, "stream is %s", fk_handle_is(handle));
		return NULL;
	}
	if (s->ctx != c) {
		*code = fk_violation(107003, "The stream is not in the current context: it is of device %d, the context of device %d", s->ctx->device, c->device);
		return NULL;
	}
	return s;
}

void fk_enqueue(fk_stream *s, fk_task *t) {
	t->stream = s;
	t->next = NULL;
	if (!t->inject) t->inject = fk_late();
	if (fk_captures(s, t)) return;
	s->issued++;
	if (fk_sw.in_line) {
		int32_t code = 0;
		if (!skipped(s, t)) {
			fk_release();
			code = fk_run_task(t);
			fk_acquire();
		}
		finish(s, t, code);
		fk_task_end(t);
		return;
	}
	if (s->tail) {
		s->tail->next = t;
	} else {
		s->head = t;
		pthread_cond_signal(&s->wake);
	}
	s->tail = t;
}

bool fk_drain(fk_stream *s, uint64_t ticket, int64_t until) {
	void *handle = s->handle;
	while (s->done < ticket) {
		if (!fk_wait(until)) return s->done >= ticket;
		if (fk_object(handle, K_STREAM) != s) return true; // destroyed meanwhile
	}
	return true;
}

int32_t fk_pending(fk_stream *s) {
	fk_guards(s->ctx->device);
	fk_order_host_stream(s); // whoever asks has waited for all
	if (s->ctx->dead) return fk_error(s->ctx->dead, "%s", s->ctx->why);
	if (!s->error) return 0;
	int32_t code = fk_error(s->error, "%s", s->why);
	if (!s->stop_on_failure) s->error = 0;
	return code;
}

int32_t f_aclrtCreateStreamWithConfig(void *out, uint32_t priority, uint32_t how) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && (!out || priority > 7 || how & ~0x3fu)) {
		code = fk_error(107000, "stream is %p, priority %u, flags %#x", out, priority, how);
	} else if (c) {
		fk_stream *s = fk_stream_new(c, &code);
		if (s) *(void **)out = s->handle;
	}
	fk_release();
	return code;
}

int32_t f_aclrtCreateStream(void *out) { return f_aclrtCreateStreamWithConfig(out, 0, 0); }

static int32_t destroy(void *handle, bool force) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_need(&code);
	fk_stream *s = fk_object(handle, K_STREAM);
	if (c && !s) {
		code = fk_violation(107017, "stream is %s", fk_handle_is(handle));
	} else if (c && s->ctx != c) {
		code = fk_violation(107003, "The stream is not in the current context");
	} else if (c && s->capture) {
		code = fk_violation(107000, "the stream records a graph");
	} else if (c) {
		fk_stream_end(s, force || c->dead);
		if (c->dead) code = fk_error(c->dead, "%s", c->why);
	}
	fk_release();
	return code;
}

int32_t f_aclrtDestroyStream(void *s) { return destroy(s, false); }

int32_t f_aclrtDestroyStreamForce(void *s) { return destroy(s, true); }

int32_t f_aclrtSynchronizeStreamWithTimeout(void *handle, int32_t ms) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(handle, &code);
	if (s && s->capture) {
		code = fk_violation(107000, "the stream records a graph");
	} else if (s && ms < -1) {
		code = fk_error(107000, "timeout is %d", ms);
	} else if (s) {
		code = fk_late(); // injected: this is a synchronisation itself
		if (code) {
			fk_error(code, "injected by FAKE_CANN_INJECT");
		} else if (!fk_drain(s, s->issued, fk_until(ms))) {
			code = fk_error(507046, "Stream synchronize timeout: %d ms, %llu tasks wait", ms, (unsigned long long)(s->issued - s->done));
		} else {
			code = fk_pending(s);
		}
	}
	fk_release();
	return code;
}

int32_t f_aclrtSynchronizeStream(void *s) { return f_aclrtSynchronizeStreamWithTimeout(s, -1); }

int32_t f_aclrtStreamQuery(void *handle, void *status) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(handle, &code);
	if (s && !status) {
		code = fk_error(107000, "status is null");
	} else if (s) {
		*(int32_t *)status = s->done < s->issued;
		if (s->done == s->issued) code = fk_pending(s);
	}
	fk_release();
	return code;
}

int32_t f_aclrtStreamAbort(void *handle) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(handle, &code);
	if (s && s->done < s->issued) {
		s->aborted = true; // until the queue is empty
		if (!s->error) {
			s->error = 107023;
			snprintf(s->why, sizeof s->why, "The stream was aborted with %llu tasks", (unsigned long long)(s->issued - s->done));
		}
		fk_broadcast();
	}
	fk_release();
	return code;
}

int32_t f_aclrtSetStreamFailureMode(void *handle, uint64_t mode) {
	int32_t code;
	fk_acquire();
	fk_stream *s = handle ? fk_stream_of(handle, &code) : NULL;
	if (!handle) {
		code = fk_error(107000, "the mode of the default stream cannot be set");
	} else if (s && mode > 1) {
		code = fk_error(107000, "mode is %llu, want 0 or 1", (unsigned long long)mode);
	} else if (s) {
		s->stop_on_failure = mode == 1;
	}
	fk_release();
	return code;
}

int32_t f_aclrtSynchronizeDeviceWithTimeout(int32_t ms) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	int64_t until = fk_until(ms);
	// Streams may come and go while this waits: look again until all are empty.
	for (bool again = c != NULL; again && !code;) {
		again = false;
		for (fk_stream *s = fk_streams; s && !again; s = s->next) {
			if (s->ctx->device != c->device || s->done == s->issued) continue;
			again = true;
			if (!fk_wait(until) && s->done < s->issued) code = fk_error(507046, "Device synchronize timeout: %d ms", ms);
		}
	}
	for (fk_stream *s = fk_streams; c && s && !code; s = s->next) {
		if (s->ctx->device == c->device) code = fk_pending(s);
	}
	fk_release();
	return code;
}

int32_t f_aclrtSynchronizeDevice(void) { return f_aclrtSynchronizeDeviceWithTimeout(-1); }
