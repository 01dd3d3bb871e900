// The switches FAKE_CANN_*: read when the library is loaded, changed by fakeSet.
#include "rt.h"

fk_switches fk_sw = {.version = 81, .soc = SOC_A2, .soc_name = "Ascend910B3", .devices = 8, .memory = 4096LL << 20, .infnan = true, .order = true,
	.destroy_waits = true,
	.time_scale = 1, .util = 37};

typedef struct delay {
	char op[64];
	int64_t us;
} delay;

typedef struct injection {
	int function;
	int64_t n;    // 0: every call
	int64_t base; // calls before it was set
	int32_t code;
	bool late;
} injection;

static delay delays[32];
static int delay_count;
static injection injections[64];
static int injection_count;

static bool bad(const char *name, const char *value) {
	fprintf(stderr, "fakecann: %s=%s: not understood\n", name, value);
	return false;
}

static bool set_soc(const char *v) {
	static const struct {
		const char *word, *name;
		int soc;
	} socs[] = {{"A2", "Ascend910B3", SOC_A2}, {"A3", "Ascend910_9391", SOC_A3}, {"950", "Ascend950PR_9589", SOC_950}, {"910", "Ascend910A", SOC_910}};
	for (size_t i = 0; i < sizeof socs / sizeof *socs; i++) {
		if (strcmp(v, socs[i].word) == 0) {
			fk_sw.soc = socs[i].soc;
			snprintf(fk_sw.soc_name, sizeof fk_sw.soc_name, "%s", socs[i].name);
			return true;
		}
	}
	if (strncmp(v, "Ascend", 6) != 0) return bad("FAKE_CANN_SOC", v);
	snprintf(fk_sw.soc_name, sizeof fk_sw.soc_name, "%s", v);
	// The plain "Ascend910B" is of the first generation; a digit behind it makes it an A2.
	fk_sw.soc = strncmp(v, "Ascend950", 9) == 0 ? SOC_950 : strncmp(v, "Ascend910_93", 12) == 0 ? SOC_A3 : strncmp(v, "Ascend910B", 10) == 0 && v[10] ?
		SOC_A2 : SOC_910;
	return true;
}

static bool set_delays(const char *v) {
	char text[1024], *save = NULL;
	snprintf(text, sizeof text, "%s", v);
	delay_count = 0;
	for (char *p = strtok_r(text, ",", &save); p && delay_count < 32; p = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(p, ':');
		if (!colon) return bad("FAKE_CANN_DELAY", v);
		*colon = 0;
		snprintf(delays[delay_count].op, sizeof delays->op, "%s", p);
		delays[delay_count++].us = (int64_t)(atof(colon + 1) * 1000);
	}
	return true;
}

int64_t fk_delay(const char *op) {
	for (int i = 0; i < delay_count; i++) {
		if (strcmp(delays[i].op, op) == 0) return delays[i].us;
	}
	for (int i = 0; i < delay_count; i++) {
		if (strcmp(delays[i].op, "*") == 0) return delays[i].us;
	}
	return 0;
}

static int function_by_name(const char *name) {
	for (int i = 0; i < FK_FUNCTION_TOTAL; i++) {
		char full[128];
		fk_name(i, full, sizeof full);
		if (strcmp(full, name) == 0) return i;
	}
	return -1;
}

static bool set_injections(const char *v) {
	char text[2048], *save = NULL;
	snprintf(text, sizeof text, "%s", v);
	injection_count = 0;
	const char *only = getenv("FAKE_CANN_INJECT_IF"), *eq = only ? strchr(only, '=') : NULL;
	if (eq) {
		char variable[64];
		snprintf(variable, sizeof variable, "%.*s", (int)(eq - only), only);
		const char *is = getenv(variable);
		if (!is || strcmp(is, eq + 1) != 0) return true;
	}
	for (char *p = strtok_r(text, ",", &save); p && injection_count < 64; p = strtok_r(NULL, ",", &save)) {
		char *n = strchr(p, ':'), *code = n ? strchr(n + 1, ':') : NULL;
		if (!code) return bad("FAKE_CANN_INJECT", v);
		*n++ = *code++ = 0;
		int f = function_by_name(p);
		if (f < 0) {
			fprintf(stderr, "fakecann: FAKE_CANN_INJECT: there is no function %s\n", p);
			return false;
		}
		injections[injection_count++] = (injection){f, strcmp(n, "*") == 0 ? 0 : atoll(n), fk_count.calls[f], (int32_t)atoi(code), strchr(code, '@') != NULL};
	}
	return true;
}

bool fk_injected(int function, int32_t *code, bool *late) {
	for (int i = 0; i < injection_count; i++) {
		const injection *in = &injections[i];
		if (in->function == function && (in->n == 0 || fk_count.calls[function] - in->base == in->n)) {
			*code = in->code;
			*late = in->late;
			fk_count.injected++;
			fk_save(); // the process may end without another chance
			return true;
		}
	}
	return false;
}

static bool set(const char *name, const char *v) {
	bool on = v[0] && strcmp(v, "0") != 0;
	if (strcmp(name, "FAKE_CANN_SOC") == 0) return set_soc(v);
	if (strcmp(name, "FAKE_CANN_DELAY") == 0) return set_delays(v);
	if (strcmp(name, "FAKE_CANN_INJECT") == 0) return set_injections(v);
	if (strcmp(name, "FAKE_CANN_DEVICES") == 0) {
		char *end;
		long n = strtol(v, &end, 10);
		if (end == v || *end || n < 0 || n > FK_DEVICES) return bad(name, v);
		fk_sw.devices = (int)n;
		return true;
	}
	if (strcmp(name, "FAKE_CANN_MEMORY_MIB") == 0) {
		fk_sw.memory = atoll(v) << 20;
	} else if (strcmp(name, "FAKE_CANN_JITTER") == 0) {
		fk_sw.jitter = on;
	} else if (strcmp(name, "FAKE_CANN_INLINE") == 0) {
		fk_sw.in_line = on;
	} else if (strcmp(name, "FAKE_CANN_ABORT") == 0) {
		fk_sw.abort = on;
	} else if (strcmp(name, "FAKE_CANN_INFNAN") == 0) {
		fk_sw.infnan = on;
	} else if (strcmp(name, "FAKE_CANN_ORDER") == 0) {
		fk_sw.order = on;
	} else if (strcmp(name, "FAKE_CANN_SEED") == 0) {
		fk_sw.seed = strtoull(v, NULL, 10);
	} else if (strcmp(name, "FAKE_CANN_TIME_SCALE") == 0) {
		fk_sw.time_scale = atof(v);
		return fk_sw.time_scale > 0 || bad(name, v);
	} else if (strcmp(name, "FAKE_CANN_TWO_RANKS") == 0) {
		fk_sw.two_ranks_hang = strcmp(v, "hang") == 0;
		return fk_sw.two_ranks_hang || strcmp(v, "refuse") == 0 || bad(name, v);
	} else if (strcmp(name, "FAKE_CANN_DESTROY") == 0) {
		fk_sw.destroy_waits = on;
	} else if (strcmp(name, "FAKE_CANN_UTIL") == 0) {
		fk_sw.util = atoi(v);
	} else if (strcmp(name, "FAKE_CANN_DCMI") == 0) {
		fk_sw.dcmi = atoi(v);
	} else if (strcmp(name, "FAKE_CANN_STATS") == 0) {
		snprintf(fk_sw.stats, sizeof fk_sw.stats, "%s", v);
	} else {
		fprintf(stderr, "fakecann: there is no switch %s\n", name);
		return false;
	}
	return true;
}

// fakeSet changes a switch; false: it does not exist, or the value means nothing.
FK_SHARED bool fakeSet(const char *name, const char *value);
FK_SHARED bool fakeSet(const char *name, const char *value) {
	fk_acquire();
	bool ok = set(name, value);
	fk_release();
	return ok;
}

__attribute__((constructor)) static void read_environment(void) {
	static const char *const names[] = {"SOC", "DEVICES", "MEMORY_MIB", "DELAY", "JITTER", "INJECT", "INLINE", "STATS", "ABORT", "ORDER", "SEED", "INFNAN",
		"TIME_SCALE",
		"TWO_RANKS", "DESTROY", "UTIL", "DCMI"};
	fk_sw.seed = (uint64_t)fk_now() * 2654435761u;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char name[64];
		snprintf(name, sizeof name, "FAKE_CANN_%s", names[i]);
		const char *v = getenv(name);
		if (v && !set(name, v)) exit(97); // a switch without effect would make a test that cannot fail
	}
}

void fk_loaded(int version) { fk_sw.version = version; }
