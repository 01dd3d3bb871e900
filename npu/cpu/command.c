//go:build cgo && linux
#include "command.h"
#include <string.h>
#include <time.h>

int64_t gt_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// With join, commands that it ran as one share the time evenly.
static int run(const gt_command *c, int n, void *stream, gt_time *times, int *status, const uint32_t *skip, int (*join)(const void *, int)) {
    for (int i = 0; i < n; i++) {
        if (skip && __atomic_load_n(skip, __ATOMIC_RELAXED)) {
            if (times) memset(times + i, 0, (n - i) * sizeof *times);
            return n;
        }
        int64_t t = times ? gt_now() : 0;
        int one = join && i + 1 < n ? join(c + i, n - i) : 0;
        if (one) {
            int64_t each = times ? (gt_now() - t) / one : 0;
            for (int k = 0; times && k < one; k++) times[i + k].begin = t + k * each, times[i + k].dur = each;
            i += one - 1;
            continue;
        }
        if ((*status = c[i].fn(c[i].self, stream))) return i;
        if (times) times[i].begin = t, times[i].dur = gt_now() - t;
    }
    return n;
}

int gt_run(const gt_command *c, int n, void *stream, gt_time *times, int *status, const uint32_t *skip, const gt_team *team) {
    *status = 0;
    if (!team) return run(c, n, stream, times, status, skip, NULL);
    for (int i = 0; i < n;) {
        int end = i, own = c[i].fn == team->fn;
        while (end < n && (c[end].fn == team->fn) == own) end++;
        int with = own && end - i >= GT_TEAM_RUN;
        if (with) team->use(team->self);
        int ran = run(c + i, end - i, stream, times ? times + i : NULL, status, skip, with ? team->join : NULL);
        if (with) team->use(NULL);
        if (*status) return i + ran;
        i = end;
    }
    return n;
}

int gt_sequence_run(void *sequence, void *stream) {
    gt_sequence *s = sequence;
    int status;
    s->failed = gt_run(s->c, s->n, stream, NULL, &status, NULL, NULL);
    return status;
}

int gt_zero_run(void *zero, void *stream) {
    (void)stream;
    gt_zero *z = zero;
    memset(z->at, 0, z->bytes);
    return 0;
}
