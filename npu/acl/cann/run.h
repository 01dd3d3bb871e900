//go:build cgo && linux

#ifndef GT_RUN_H
#define GT_RUN_H

#include "shims.gen.h"

// gt_call is a prepared call of an operator.
typedef struct {
    int32_t op;
    const gt_arg *args;
    void *executor;     // of the first phase, if it can be reused; NULL: a new first phase for each launch
    void *workspace;
    uint64_t size;      // that a reused executor needs
    uint64_t capacity;  // of the workspace
    int32_t left;       // not 0: the call is left out
} gt_call;

// gt_seq is a list of calls that are launched together.
typedef struct {
    int32_t n;
    gt_call *calls;
} gt_seq;

// what stopped gt_cann_run, besides a code of CANN
#define GT_NO_ROOM (INT32_MIN + 1) // the workspace is too small

// gt_at says how far gt_cann_run came, and counts.
typedef struct {
    int32_t seq, call, phase; // where it stopped
    uint64_t phase1, phase2;  // calls so far, ever
    uint64_t wants;           // workspace that did not fit
} gt_at;

// gt_cann_run launches sequences on a stream. It stops before a sequence when *skip is set. It returns 0, or the code of the call where it stopped.
int32_t gt_cann_run(const gt_cann *l, gt_seq *const *list, int32_t n, void *stream, const uint32_t *skip, gt_at *at);
// gt_cann_one launches one call.
int32_t gt_cann_one(const gt_cann *l, const gt_call *c, void *stream, gt_at *at);

#endif
