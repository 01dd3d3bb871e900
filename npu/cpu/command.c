//go:build cgo && linux
#include "command.h"
#include <string.h>
#include <time.h>

int64_t gt_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int gt_run(const gt_command *c, int n, void *stream, gt_time *times, int *status, const uint32_t *skip) {
    *status = 0;
    for (int i = 0; i < n; i++) {
        if (skip && __atomic_load_n(skip, __ATOMIC_RELAXED)) {
            if (times) memset(times + i, 0, (n - i) * sizeof *times);
            return n;
        }
        int64_t t = times ? gt_now() : 0;
        if ((*status = c[i].fn(c[i].self, stream))) return i;
        if (times) times[i].begin = t, times[i].dur = gt_now() - t;
    }
    return n;
}

int gt_sequence_run(void *sequence, void *stream) {
    gt_sequence *s = sequence;
    int status;
    s->failed = gt_run(s->c, s->n, stream, NULL, &status, NULL);
    return status;
}

int gt_zero_run(void *zero, void *stream) {
    (void)stream;
    gt_zero *z = zero;
    memset(z->at, 0, z->bytes);
    return 0;
}
