// The lock, the clock, errors and counters.
#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "rt.h"

fk_counters fk_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local int current = -1;
static _Thread_local bool known; // this thread called in before
static _Thread_local int32_t late, last;
static _Thread_local bool has_text;
static _Thread_local char text[1024], taken[1024];

static void make_condition(void) {
	pthread_condattr_t a;
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &a);
	pthread_condattr_destroy(&a);
}

void fk_acquire(void) {
	pthread_once(&once, make_condition);
	pthread_mutex_lock(&lock);
}

void fk_release(void) { pthread_mutex_unlock(&lock); }

pthread_mutex_t *fk_mutex(void) { return &lock; }

void fk_broadcast(void) { pthread_cond_broadcast(&changed); }

bool fk_wait(int64_t until) {
	if (until < 0) {
		pthread_cond_wait(&changed, &lock);
		return true;
	}
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	return pthread_cond_timedwait(&changed, &lock, &t) != ETIMEDOUT;
}

int64_t fk_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

int64_t fk_until(int64_t ms) { return ms < 0 ? -1 : fk_now() + ms * 1000; }

void fk_sleep(int64_t us) {
	struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
	while (nanosleep(&t, &t) && errno == EINTR) {}
}

void *fk_zalloc(size_t n) {
	void *p = calloc(1, n ? n : 1);
	if (!p) {
		fprintf(stderr, "fakecann: out of memory\n");
		abort();
	}
	return p;
}

void fk_name(int function, char *out, size_t n) {
	if (function < 0) {
		snprintf(out, n, "a stream");
	} else if (function < FK_FUNCTIONS) {
		snprintf(out, n, "%s", fk_function_names[function]);
	} else {
		int i = function - FK_FUNCTIONS;
		snprintf(out, n, "aclnn%s%s", fk_ops[i / 2].name, i % 2 ? "" : "GetWorkspaceSize");
	}
}

const char *fk_current(void) {
	static _Thread_local char name[128];
	fk_name(current, name, sizeof name);
	return name;
}

int32_t fk_enter(int function) {
	int32_t code = 0;
	fk_acquire();
	current = function;
	fk_count.calls[function]++;
	if (!known) fk_count.threads++;
	known = true;
	bool at_the_stream = false;
	late = 0;
	if (fk_injected(function, &code, &at_the_stream)) {
		if (at_the_stream) {
			late = code;
			code = 0;
		} else {
			fk_error(code, "injected by FAKE_CANN_INJECT");
		}
	}
	fk_release();
	return code;
}

void fk_leave(int function) {
	(void)function;
	current = -1;
	late = 0;
}

int32_t fk_late(void) {
	int32_t code = late;
	late = 0;
	return code;
}

// prefix is the code that CANN's texts begin with.
static const char *prefix(int32_t code) {
	if (code < 1000) return "EI0003"; // HCCL; its own texts bring a code
	if (code == 207001 || code == 207018) return "EL0004";
	if (code < 161000) return "EE1001";
	if (code < 207000) return "EZ1001";
	if (code == 507046 || code == 507047 || code == 107020) return "EE1002";
	return code >= 500000 ? "EZ9999" : "EE1001";
}

static void keep(int32_t code, const char *format, va_list l) {
	char what[700];
	vsnprintf(what, sizeof what, format, l);
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];
	localtime_r(&now, &tm);
	strftime(stamp, sizeof stamp, "%Y-%m-%d-%H:%M:%S", &tm);
	bool own = what[0] == 'E' && (what[1] == 'I' || what[1] == 'J') && what[2] >= '0' && what[2] <= '9';
	snprintf(text, sizeof text, "%.6s: [PID: %d] %s %s%s\n        TraceBack (most recent call last):\n        %s failed, error code is %d.\n", own ?
		what : prefix(code), (int)getpid(), stamp,
		own ? "" : "Reason: ", own ? what + 8 : what, fk_current(), code);
	has_text = true;
	last = code;
}

int32_t fk_error(int32_t code, const char *format, ...) {
	va_list l;
	va_start(l, format);
	keep(code, format, l);
	va_end(l);
	return code;
}

int32_t fk_violation(int32_t code, const char *format, ...) {
	va_list l;
	va_start(l, format);
	keep(code, format, l);
	va_end(l);
	char what[FK_WHY];
	va_start(l, format);
	int n = snprintf(what, sizeof what, "%s: ", fk_current());
	vsnprintf(what + n, sizeof what - (size_t)n, format, l);
	va_end(l);
	fprintf(stderr, "fakecann: violation: %s\n", what);
	if (!fk_count.violations++) snprintf(fk_count.first_violation, sizeof fk_count.first_violation, "%s", what);
	fk_save();
	if (fk_sw.abort) abort();
	return code;
}

void *f_aclGetRecentErrMsg(void) {
	if (!has_text) return NULL;
	has_text = false;
	memcpy(taken, text, sizeof taken);
	return taken;
}

static int32_t last_error(int32_t level, bool clear) {
	if (level != 0) return fk_error(107000, "level is %d, want 0 (the thread)", level);
	int32_t code = last;
	if (clear) last = 0;
	return code;
}

int32_t f_aclrtPeekAtLastError(int32_t level) { return last_error(level, false); }

int32_t f_aclrtGetLastError(int32_t level) { return last_error(level, true); }
