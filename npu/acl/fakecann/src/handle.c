// Handles: numbers of a table, as addresses in a range that is mapped nowhere.
#include <sys/mman.h>

#include "rt.h"

enum { PART = 4096, PARTS = 1 << 16, STEP = 64 };

typedef struct slot {
	void *object;
	unsigned char kind;
} slot;

static slot *parts[PARTS];
static int64_t used;
static char *range;

static const char *const kinds[] = {"nothing", "a context", "a stream", "an event", "a graph", "a tensor", "a scalar", "an array", "a list of tensors",
	"a list of scalars", "an executor", "a communicator"};

void *fk_handle(enum fk_kind kind, void *object) {
	if (!range) {
		range = mmap(NULL, (size_t)PART * PARTS * STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (range == MAP_FAILED) abort();
	}
	int64_t i = used++, p = i / PART;
	if (p >= PARTS) {
		fprintf(stderr, "fakecann: more than %d handles\n", PART * PARTS);
		abort();
	}
	if (!parts[p]) parts[p] = fk_zalloc(PART * sizeof(slot));
	parts[p][i % PART] = (slot){object, kind};
	return range + i * STEP;
}

static slot *find(const void *handle) {
	int64_t at = (const char *)handle - range;
	if (!handle || !range || at < 0 || at % STEP || at / STEP >= used) return NULL;
	int64_t i = at / STEP;
	return parts[i / PART] ? &parts[i / PART][i % PART] : NULL;
}

void *fk_object(const void *handle, enum fk_kind kind) {
	slot *s = find(handle);
	return s && s->object && s->kind == kind ? s->object : NULL;
}

const char *fk_handle_is(const void *handle) {
	static _Thread_local char words[64];
	slot *s = find(handle);
	if (!handle) return "null";
	if (!s) return "no handle that the fake gave out";
	snprintf(words, sizeof words, "%s%s", kinds[s->kind], s->object ? "" : " that was destroyed");
	return words;
}

void fk_handle_end(const void *handle) {
	slot *s = find(handle);
	if (s) s->object = NULL;
}
