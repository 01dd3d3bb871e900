//go:build cgo && linux

#include "run.h"

typedef int32_t (*gt_phase2_fn)(void *, uint64_t, void *, void *);

int32_t gt_cann_one(const gt_cann *l, const gt_call *c, void *stream, gt_at *at) {
    gt_phase2_fn run = (gt_phase2_fn)l->run[c->op];
    uint64_t size = c->size;
    void *executor = c->executor;
    at->phase = 1;
    if (!executor) {
        size = 0;
        at->phase1++;
        int32_t code = gt_phase1(l, c->op, c->args, &size, &executor);
        if (code) return code;
    }
    if (size > c->capacity) {
        at->wants = size;
        if (!c->executor && executor) gt_aclDestroyAclOpExecutor(l, executor);
        return GT_NO_ROOM;
    }
    at->phase = 2;
    if (!run) return GT_ABSENT;
    at->phase2++;
    return run(size ? c->workspace : NULL, size, executor, stream);
}

int32_t gt_cann_run(const gt_cann *l, gt_seq *const *list, int32_t n, void *stream, const uint32_t *skip, gt_at *at) {
    for (int32_t i = 0; i < n; i++) {
        at->seq = i;
        if (__atomic_load_n(skip, __ATOMIC_RELAXED)) return 0;
        for (int32_t j = 0; j < list[i]->n; j++) {
            if (list[i]->calls[j].left) continue;
            at->call = j;
            int32_t code = gt_cann_one(l, &list[i]->calls[j], stream, at);
            if (code) return code;
        }
    }
    at->seq = n;
    return 0;
}
