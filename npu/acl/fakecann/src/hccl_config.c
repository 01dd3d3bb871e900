// The configuration of a communicator: HcclCommConfig, byte by byte, and the variables HCCL_*.
#include "hccl.h"

enum { UNSET = -1 };

int32_t hccl_deterministic_option;

static uint32_t u32(const unsigned char *c, int at) {
	uint32_t v;
	memcpy(&v, c + at, 4);
	return v;
}

static uint64_t u64(const unsigned char *c, int at) {
	uint64_t v;
	memcpy(&v, c + at, 8);
	return v;
}

static bool ended(const unsigned char *c, int at, int n) { return memchr(c + at, 0, (size_t)n) != NULL; }

// layout_error checks what the structure says about itself.
static const char *layout_error(const unsigned char *c) {
	static _Thread_local char why[160];
	uint64_t size = u64(c, 0);
	uint32_t magic = u32(c, 8), version = u32(c, 12);
	if (magic != 0xf0f0f0f0u) {
		snprintf(why, sizeof why, "magic is %#x, want 0xf0f0f0f0", magic);
	} else if (version != 5 && (version != 10 || fk_sw.version < 90)) {
		snprintf(why, sizeof why, "version %u is not known to this HCCL", version);
	} else if (version == 5 ? size != 300 : size != 2232 && size != 2240) {
		snprintf(why, sizeof why, "structSize is %llu in version %u, want %s", (unsigned long long)size, version, version == 5 ? "300" : "2232 or 2240");
	} else if (u64(c, 16)) {
		snprintf(why, sizeof why, "bytes 16 to 23 are not zero");
	} else {
		return NULL;
	}
	return why;
}

// field_error checks the fields of version 5.
static const char *field_error(const unsigned char *c) {
	uint32_t buffer = u32(c, 24), det = u32(c, 28), mode = u32(c, 288), tc = u32(c, 292), sl = u32(c, 296);
	if (buffer == 0) return "hcclBufferSize is 0";
	if (buffer != (uint32_t)UNSET && buffer > 1 << 20) return "hcclBufferSize is larger than a TiB: it counts MB";
	if (det > 2 && det != (uint32_t)UNSET) return "hcclDeterministic is not 0, 1, 2 or unset";
	if (!ended(c, 32, NAME_BYTES) || !ended(c, 160, 128)) return "hcclCommName or hcclUdi does not end";
	if (mode > 6) return "hcclOpExpansionMode does not exist";
	if (tc != (uint32_t)UNSET && (tc > 255 || tc % 4)) return "hcclRdmaTrafficClass is no multiple of 4 up to 255";
	if (sl != (uint32_t)UNSET && sl > 7) return "hcclRdmaServiceLevel is larger than 7";
	return NULL;
}

// long_error checks the fields of version 10.
static const char *long_error(const unsigned char *c) {
	int32_t timeout;
	memcpy(&timeout, c + 316, 4);
	if (c[312] > 1 || c[313] || c[314] || c[315]) return "aclGraphZeroCopyEnable or the bytes behind it are not 0 or 1";
	if (timeout < -1) return "execTimeOut is negative";
	if (!ended(c, 320, 1600)) return "hcclAlgo does not end";
	if (c[320] && !strstr((const char *)c + 320, "level")) return "hcclAlgo names no level";
	if (!ended(c, 1920, 50) || !ended(c, 1970, 128) || !ended(c, 2098, 128)) return "hcclRetryEnable, hcclRetryParams or hcclBufferName does not end";
	return NULL;
}

// number reads a variable; false: it is no number in the range.
static bool number(const char *name, double lo, double hi, double *out) {
	const char *v = getenv(name);
	char *end;
	if (!v || !*v) return true;
	double d = strtod(v, &end);
	if (*end || !(d >= lo && d <= hi)) {
		fk_error(HC_PARA, "EI0001: The environment variable %s is %s, want %g to %g", name, v, lo, hi);
		return false;
	}
	*out = d;
	return true;
}

static bool environment(hccl_settings *s) {
	double buffer = 200;
	s->connect_s = 120;
	s->exec_s = 1836;
	bool ok = number("HCCL_CONNECT_TIMEOUT", 120, 7200, &s->connect_s) && number("HCCL_EXEC_TIMEOUT", 0, 2147483647, &s->exec_s) && number("HCCL_BUFFSIZE", 1,
		1 << 20, &buffer);
	s->buffer_mb = (int64_t)buffer;
	const char *det = getenv("HCCL_DETERMINISTIC"), *algo = getenv("HCCL_ALGO");
	s->deterministic = hccl_deterministic_option || (det && (strcmp(det, "true") == 0 || strcmp(det, "strict") == 0)); // other words have no effect
	if (ok && algo && *algo && !strstr(algo, "level")) {
		fk_error(HC_PARA, "EI0001: The environment variable HCCL_ALGO is %s, which names no level", algo);
		ok = false;
	}
	return ok;
}

int32_t hccl_read_config(const unsigned char *c, hccl_settings *s) {
	memset(s, 0, sizeof *s);
	if (!environment(s)) return HC_PARA;
	if (c) {
		const char *why = layout_error(c);
		if (!why) why = field_error(c);
		if (!why && u32(c, 12) == 10) why = long_error(c);
		if (why) return fk_violation(HC_PARA, "EI0003: HcclCommConfig: %s", why);
		if (u32(c, 24) != (uint32_t)UNSET) s->buffer_mb = u32(c, 24);
		if (u32(c, 28) != (uint32_t)UNSET) s->deterministic = u32(c, 28) != 0;
		snprintf(s->name, sizeof s->name, "%s", (const char *)c + 32);
		if (u32(c, 12) == 10 && u32(c, 316) != (uint32_t)UNSET) s->exec_s = u32(c, 316);
	}
	if (fk_sw.soc == SOC_A3 || fk_sw.soc == SOC_950) s->deterministic = true; // always, in the mode that is their default
	return HC_OK;
}

uint32_t f_HcclGetCommConfigCapability(void) { return fk_sw.version >= 90 ? 12 : 5; }

int32_t f_HcclSetConfig(int32_t config, struct fk_s4 value) {
	if (config != 0 || value.v < 0 || value.v > 2) return fk_error(HC_PARA, "config is %d, value %d", config, value.v);
	hccl_deterministic_option = value.v;
	return HC_OK;
}

int32_t f_HcclGetConfig(int32_t config, void *value) {
	if (config != 0 || !value) return fk_error(HC_PARA, "config is %d, value %p", config, value);
	*(int32_t *)value = hccl_deterministic_option;
	return HC_OK;
}

void *f_HcclGetErrorString(int32_t code) {
	static char *const texts[] = {"no error", "parameter error", "empty pointer", "memory error", "internal error", "not support feature",
		"not found specific resource", "resource unavailable",
		"call system interface error", "timeout", "open file fail", "tcp connect fail", "roce connect fail", "tcp transfer fail", "roce transfer fail",
			"call runtime api fail", "call driver api fail",
		"call profiling api fail", "call cce api fail", "call network api fail", "operation again", "remote error", "suspending communicator", "retry constraint",
			"out of memory"};
	return code >= 0 && code <= HC_OOM ? texts[code] : (void *)(uintptr_t)"unknown error";
}
