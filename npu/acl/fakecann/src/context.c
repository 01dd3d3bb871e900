// Devices and contexts. A thread has a current context; the primary one of a device comes with aclrtSetDevice.
#include "rt.h"

fk_device fk_devices[FK_DEVICES];
bool fk_initialised;
int64_t fk_options[16];
int32_t fk_wait_timeout;

static _Thread_local void *here; // handle of the thread's context
static _Thread_local uint64_t seen; // devices that this thread used

fk_context *fk_need(int32_t *code) {
	fk_context *c = fk_object(here, K_CONTEXT);
	if (!fk_initialised) {
		*code = fk_violation(100001, "aclInit was not called");
		return NULL;
	}
	if (!c) {
		*code = fk_error(107002, "The current thread has no context%s", here ? ": it was destroyed" : ": aclrtSetDevice was not called on it");
		return NULL;
	}
	*code = 0;
	if (!(seen >> c->device & 1)) {
		seen |= 1ULL << c->device;
		fk_count.device_threads[c->device]++;
	}
	return c;
}

fk_context *fk_alive(int32_t *code) {
	fk_context *c = fk_need(code);
	if (c && c->dead) {
		*code = fk_error(c->dead, "%s", c->why);
		return NULL;
	}
	return c;
}

bool fk_deterministic(const fk_context *c) { return (c->option_set[0] ? c->options[0] : fk_options[0]) != 0; }

void fk_die(fk_context *c, int32_t code, const char *why) {
	if (c->dead) return;
	c->dead = code;
	snprintf(c->why, sizeof c->why, "%s", why);
	fk_broadcast();
}

static fk_context *context_new(int device, bool primary) {
	int32_t code;
	fk_context *c = fk_zalloc(sizeof *c);
	c->device = device;
	c->primary = primary;
	c->handle = fk_handle(K_CONTEXT, c);
	c->stream = fk_stream_new(c, &code);
	fk_count.streams--; // the default stream is not the program's
	fk_count.contexts += !primary;
	return c;
}

// context_end ends a context. What still lives in it goes with it, which a program must not rely on.
static void context_end(fk_context *c) {
	int streams = 0;
	for (fk_stream *s = fk_streams, *next; s; s = next) {
		next = s->next;
		if (s->ctx != c || s == c->stream) continue;
		streams++;
		fk_stream_end(s, true);
	}
	if (streams && !c->dead) fk_violation(0, "the context of device %d ends with %d streams that were not destroyed", c->device, streams);
	fk_stream_end(c->stream, true);
	fk_count.streams++;
	fk_count.contexts -= !c->primary;
	fk_handle_end(c->handle);
	c->stream = NULL; // the rest stays: events and executors may look at it
}

static bool device_ok(int32_t device, int32_t *code) {
	*code = 0;
	if (!fk_initialised) {
		*code = fk_violation(100001, "aclInit was not called");
	} else if (device < 0 || device >= fk_sw.devices) {
		*code = fk_error(107001, "Invalid device ID %d, there are %d devices", device, fk_sw.devices);
	}
	return !*code;
}

int32_t f_aclrtSetDevice(int32_t device) {
	int32_t code;
	fk_acquire();
	if (device_ok(device, &code)) {
		fk_device *d = &fk_devices[device];
		if (!d->primary) d->primary = context_new(device, true);
		d->refs++;
		here = d->primary->handle;
	}
	fk_release();
	return code;
}

int32_t f_aclrtGetDevice(void *out) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_need(&code);
	if (c && out) *(int32_t *)out = c->device;
	if (c && !out) code = fk_error(107000, "deviceId is null");
	fk_release();
	return code;
}


int32_t f_aclrtResetDevice(int32_t device) {
	int32_t code;
	fk_acquire();
	if (device_ok(device, &code)) {
		fk_device *d = &fk_devices[device];
		if (!d->refs) {
			code = fk_violation(107001, "device %d was not set", device);
		} else if (!--d->refs) {
			if (fk_memory_used(device) && !d->primary->dead) fk_violation(0, "device %d is reset with %lld bytes that were not freed", device,
				(long long)fk_memory_used(device));
			context_end(d->primary);
			d->primary = NULL;
			d->sat_mode = d->overflow = 0;
			memset(d->peers, 0, sizeof d->peers);
			if (!fk_object(here, K_CONTEXT)) here = NULL;
			fk_save();
		}
	}
	fk_release();
	return code;
}

int32_t f_aclrtCreateContext(void *out, int32_t device) {
	int32_t code;
	fk_acquire();
	if (device_ok(device, &code) && !out) code = fk_error(107000, "context is null");
	if (!code) *(void **)out = here = context_new(device, false)->handle;
	fk_release();
	return code;
}

int32_t f_aclrtDestroyContext(void *handle) {
	int32_t code = 0;
	fk_acquire();
	fk_context *c = fk_object(handle, K_CONTEXT);
	if (!c) {
		code = fk_violation(107017, "context is %s", fk_handle_is(handle));
	} else if (c->primary) {
		code = fk_violation(107000, "the context of aclrtSetDevice ends with aclrtResetDevice only");
	} else {
		context_end(c);
		if (here == handle) here = NULL;
	}
	fk_release();
	return code;
}

int32_t f_aclrtSetCurrentContext(void *handle) {
	fk_acquire();
	int32_t code = fk_object(handle, K_CONTEXT) ? 0 : fk_violation(107017, "context is %s", fk_handle_is(handle));
	if (!code) here = handle;
	fk_release();
	return code;
}

int32_t f_aclrtGetCurrentContext(void *out) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_need(&code);
	if (c && out) *(void **)out = c->handle;
	if (c && !out) code = fk_error(107000, "context is null");
	fk_release();
	return code;
}

int32_t f_aclrtDeviceCanAccessPeer(void *can, int32_t device, int32_t peer) {
	int32_t code;
	fk_acquire();
	if (device_ok(device, &code) && device_ok(peer, &code)) {
		if (!can) {
			code = fk_error(107000, "canAccessPeer is null");
		} else {
			*(int32_t *)can = device != peer;
		}
	}
	fk_release();
	return code;
}

int32_t f_aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t how) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && device_ok(peer, &code)) {
		if (how || peer == c->device) {
			code = fk_error(107000, "flags are %u, the peer of device %d is %d", how, c->device, peer);
		} else {
			fk_devices[c->device].peers[peer] = true;
		}
	}
	fk_release();
	return code;
}

// option_at checks the number of an option.
static bool option_ok(int32_t option, int32_t *code) {
	*code = option >= 0 && option <= 3 ? 0 : fk_error(107000, "option %d does not exist", option);
	return !*code;
}

int32_t f_aclrtSetSysParamOpt(int32_t option, int64_t value) {
	int32_t code;
	fk_acquire();
	if (option_ok(option, &code)) fk_options[option] = value;
	fk_release();
	return code;
}

int32_t f_aclrtGetSysParamOpt(int32_t option, void *value) {
	int32_t code;
	fk_acquire();
	if (option_ok(option, &code) && !value) code = fk_error(107000, "value is null");
	if (!code) *(int64_t *)value = fk_options[option];
	fk_release();
	return code;
}

int32_t f_aclrtCtxSetSysParamOpt(int32_t option, int64_t value) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && option_ok(option, &code)) {
		c->options[option] = value;
		c->option_set[option] = true;
	}
	fk_release();
	return code;
}

int32_t f_aclrtCtxGetSysParamOpt(int32_t option, void *value) {
	int32_t code;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && option_ok(option, &code)) {
		if (!value) {
			code = fk_error(107000, "value is null");
		} else {
			*(int64_t *)value = c->option_set[option] ? c->options[option] : fk_options[option];
		}
	}
	fk_release();
	return code;
}
