// Statistics: what is alive, what was called, what was violated.
#include <stdarg.h>
#include <unistd.h>

#include "rt.h"

typedef struct writer {
	char *to;
	size_t room, n;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
	va_list l;
	va_start(l, format);
	int k = vsnprintf(w->n < w->room ? w->to + w->n : NULL, w->n < w->room ? w->room - w->n : 0, format, l);
	va_end(l);
	w->n += (size_t)k;
}

static void text(writer *w, const char *s) {
	for (; *s; s++) put(w, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", (unsigned char)*s < 32 ? ' ' : *s);
}

static void report(writer *w) {
	const fk_counters *c = &fk_count;
	const struct {
		const char *name;
		int64_t n;
	} l[] = {
		{"violations", c->violations}, {"leaked_executors", c->executors}, {"injected", c->injected}, {"pageable_copies", c->pageable_copies}, {"tasks", c->tasks},
		{"threads", c->threads}, {"device_blocks", c->device_blocks}, {"device_bytes", c->device_bytes}, {"host_blocks", c->host_blocks}, {"host_bytes",
			c->host_bytes},
		{"streams", c->streams}, {"events", c->events}, {"contexts", c->contexts}, {"comms", c->comms}, {"tensors", c->tensors}, {"scalars", c->scalars},
		{"arrays", c->arrays}, {"lists", c->lists}, {"repeatable", c->repeatable}, {"graphs", c->graphs},
		{"out_of_range", fake_out_of_range},
	};
	put(w, "{");
	for (size_t i = 0; i < sizeof l / sizeof *l; i++) put(w, "\"%s\": %lld, ", l[i].name, (long long)l[i].n);
	put(w, "\"device_threads\": [");
	for (int i = 0; i < fk_sw.devices; i++) put(w, "%s%lld", i ? ", " : "", (long long)c->device_threads[i]);
	put(w, "], \"first_violation\": \"");
	text(w, c->first_violation);
	put(w, "\", \"calls\": {");
	const char *comma = "";
	for (int i = 0; i < FK_FUNCTION_TOTAL; i++) {
		char name[128];
		fk_name(i, name, sizeof name);
		if (c->calls[i]) {
			put(w, "%s\"%s\": %lld", comma, name, (long long)c->calls[i]);
			comma = ", ";
		}
	}
	put(w, "}}\n");
}

// fakeStats writes the statistics as JSON, and returns how many bytes they have without the zero at the end.
FK_SHARED size_t fakeStats(char *out, size_t n);
FK_SHARED size_t fakeStats(char *out, size_t n) {
	writer w = {out, n, 0};
	fk_acquire();
	report(&w);
	fk_release();
	return w.n;
}

// fakeZero sets the counters of calls, tasks, violations and injections to zero; what is alive stays counted. For tests that share a process.
FK_SHARED void fakeZero(void);
FK_SHARED void fakeZero(void) {
	fk_acquire();
	memset(fk_count.calls, 0, sizeof fk_count.calls);
	fk_count.violations = fk_count.injected = fk_count.pageable_copies = fk_count.tasks = 0;
	fk_count.first_violation[0] = 0;
	fake_out_of_range = 0;
	fk_release();
}

// fk_save writes the statistics to the file of FAKE_CANN_STATS. A Go program ends without C's handlers of the exit, so it is called whenever a device is
// reset, after each violation, and at the end of all. Lock held.
void fk_save(void) {
	if (!fk_sw.stats[0]) return;
	char name[600], *pid = strstr(fk_sw.stats, "%p");
	if (pid) {
		snprintf(name, sizeof name, "%.*s%d%s", (int)(pid - fk_sw.stats), fk_sw.stats, (int)getpid(), pid + 2);
	} else {
		snprintf(name, sizeof name, "%s", fk_sw.stats);
	}
	static char all[1 << 18];
	writer w = {all, sizeof all, 0};
	report(&w);
	FILE *f = fopen(name, "w");
	if (!f) return;
	fwrite(all, 1, w.n < sizeof all ? w.n : sizeof all, f);
	fclose(f);
}

__attribute__((destructor)) static void at_exit(void) { fk_save(); }
