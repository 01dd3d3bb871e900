// What concerns the process and what a device is: aclInit, versions, names, capabilities, utilisation, saturation.
#include "rt.h"

int32_t f_aclInit(void *config) {
	(void)config;
	fk_acquire();
	int32_t code = fk_initialised ? fk_error(100002, "aclInit was called before") : 0;
	fk_initialised = true;
	fk_release();
	return code;
}

static bool finalised;

int32_t f_aclFinalize(void) {
	int32_t code = 0;
	fk_acquire();
	if (!fk_initialised) {
		code = finalised ? fk_error(100037, "aclFinalize was called before") : fk_error(100001, "aclInit was not called");
	} else {
		for (int i = 0; i < FK_DEVICES; i++) {
			if (fk_devices[i].refs && !fk_devices[i].primary->dead) fk_violation(0, "device %d was not reset", i);
		}
		fk_initialised = false;
		finalised = true;
		fk_save();
	}
	fk_release();
	return code;
}

int32_t f_aclnnInit(void *config) {
	(void)config;
	fk_acquire();
	fk_initialised = true;
	fk_release();
	return 0;
}

int32_t f_aclnnFinalize(void) { return 0; }

int32_t f_aclrtGetVersion(void *major, void *minor, void *patch) {
	if (!major || !minor || !patch) return fk_error(100000, "a pointer is null");
	*(int32_t *)major = 1;
	*(int32_t *)minor = fk_sw.version >= 90 ? 16 : 13;
	*(int32_t *)patch = 0;
	return 0;
}

void *f_aclrtGetSocName(void) { return fk_initialised ? fk_sw.soc_name : NULL; }

int32_t f_aclrtGetRunMode(void *mode) {
	if (!mode) return fk_error(107000, "runMode is null");
	*(int32_t *)mode = 1; // on a host
	return 0;
}

// visible is the number of devices that ASCEND_RT_VISIBLE_DEVICES leaves: reading stops at the first entry that does not ascend or does not exist.
static int visible(void) {
	const char *v = getenv("ASCEND_RT_VISIBLE_DEVICES");
	if (!v) return fk_sw.devices;
	int n = 0;
	long last = -1;
	while (*v) {
		char *end;
		long id = strtol(v, &end, 10);
		if (end == v || id <= last || id >= fk_sw.devices || (*end && *end != ',')) break;
		last = id;
		n++;
		v = *end ? end + 1 : end;
	}
	return n;
}

int32_t f_aclrtGetDeviceCount(void *count) {
	if (!fk_initialised) return fk_violation(100001, "aclInit was not called");
	if (!count) return fk_error(107000, "count is null");
	int n = visible();
	*(uint32_t *)count = (uint32_t)n;
	return n ? 0 : fk_error(207004, "No usable device");
}

static int32_t known(int32_t device) {
	if (!fk_initialised) return fk_violation(100001, "aclInit was not called");
	return device >= 0 && device < fk_sw.devices ? 0 : fk_error(107001, "Invalid device ID %d", device);
}

int32_t f_aclrtQueryDeviceStatus(int32_t device, void *status) {
	int32_t code = known(device);
	if (code) return code;
	if (!status) return fk_error(107000, "deviceStatus is null");
	fk_acquire();
	fk_context *c = fk_devices[device].primary;
	*(int32_t *)status = c && c->dead ? 1 : 0;
	fk_release();
	return 0;
}

int32_t f_aclrtGetDeviceUtilizationRate(int32_t device, void *out) {
	int32_t code = known(device);
	if (code) return code;
	if (!out) return fk_error(107000, "utilizationInfo is null");
	int32_t *u = out; // cube, vector, AI CPU, memory; then a pointer
	u[0] = fk_sw.util;
	u[1] = fk_sw.util / 2;
	u[2] = -1;
	fk_acquire();
	u[3] = (int32_t)(fk_memory_used(device) * 100 / (fk_sw.memory ? fk_sw.memory : 1));
	fk_release();
	return 0;
}

int32_t f_aclGetDeviceCapability(uint32_t device, int32_t info, void *value) {
	int32_t code = known((int32_t)device);
	if (code) return code;
	if (!value || info < 0 || info > 2) return fk_error(107000, "info is %d, value %p", info, value);
	*(int64_t *)value = info == 0 ? 20 : info == 1 ? 40 : 192 << 20;
	return 0;
}

int32_t f_aclGetCannAttribute(int32_t attr, void *value) {
	if (!value || attr < 0 || attr > 2) return fk_error(100000, "attr is %d, value %p", attr, value);
	bool new_chip = fk_sw.soc != SOC_910;
	*(int32_t *)value = attr == 0 ? fk_sw.infnan && new_chip : attr == 1 ? new_chip : !new_chip;
	return 0;
}

int32_t f_aclrtSetDeviceSatMode(int32_t mode) {
	int32_t code = 0;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && (mode < 0 || mode > 1)) {
		code = fk_error(107000, "mode is %d, want 0 or 1", mode);
	} else if (c && mode == 1 && !fk_sw.infnan) {
		code = fk_error(207000, "the device has no INF/NAN mode");
	} else if (c && mode == 0 && fk_sw.soc == SOC_950) {
		code = fk_error(207000, "the device has no saturation mode");
	} else if (c) {
		fk_devices[c->device].sat_mode = mode;
	}
	fk_release();
	return code;
}

int32_t f_aclrtGetDeviceSatMode(void *mode) {
	int32_t code = 0;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && !mode) {
		code = fk_error(107000, "mode is null");
	} else if (c) {
		*(int32_t *)mode = fk_sw.soc == SOC_950 ? 1 : fk_devices[c->device].sat_mode;
	}
	fk_release();
	return code;
}

// overflow is the task that reads or clears the mark of saturated values.
typedef struct overflow {
	fk_task t;
	void *out; // NULL: clear
} overflow;

static int32_t overflow_run(fk_task *t) {
	overflow *o = (overflow *)t;
	fk_acquire();
	int device = t->stream->ctx->device;
	char *p = o->out ? fk_reach(device, o->out, 64, t->why, sizeof t->why) : NULL;
	if (p) {
		memset(p, 0, 64);
		memcpy(p, &fk_devices[device].overflow, 4);
	}
	if (!o->out) fk_devices[device].overflow = 0;
	fk_release();
	return o->out && !p ? 507015 : 0;
}

static void plain_free(fk_task *t) { free(t); }

static int32_t overflow_task(void *out, bool clear, void *stream) {
	int32_t code;
	fk_acquire();
	fk_stream *s = fk_stream_of(stream, &code);
	if (s && fk_devices[s->ctx->device].sat_mode == 1) {
		code = fk_error(207000, "the device is in INF/NAN mode");
	} else if (s) {
		overflow *o = fk_zalloc(sizeof *o);
		o->t = (fk_task){.name = "overflow", .run = overflow_run, .free = plain_free};
		o->out = clear ? NULL : out;
		fk_enqueue(s, &o->t);
	}
	fk_release();
	return code;
}

int32_t f_aclrtGetOverflowStatus(void *out, uint64_t bytes, void *stream) {
	if (!out || bytes != 64) return fk_error(107000, "outputAddr is %p, outputSize %llu, want 64", out, (unsigned long long)bytes);
	return overflow_task(out, false, stream);
}

int32_t f_aclrtResetOverflowStatus(void *stream) { return overflow_task(NULL, true, stream); }

int32_t f_aclrtSetOpWaitTimeout(uint32_t seconds) {
	fk_wait_timeout = (int32_t)seconds;
	return 0;
}

int32_t f_aclrtSetOpExecuteTimeOut(uint32_t seconds) {
	(void)seconds; // the fake's kernels end
	return 0;
}

uint64_t f_aclDataTypeSize(int32_t dtype) { return (uint64_t)dtype_size(dtype); }
