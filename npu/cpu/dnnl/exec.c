//go:build cgo && linux

#include "lib.h"
#include <stdlib.h>

gt_exec *gt_exec_new(gt_lib *l, const void *prim, int n, const int *ids, void *const *mds, void *const *ptrs, int *status) {
    gt_exec *e = calloc(1, sizeof *e + n * sizeof(gt_arg));
    if (!e) {
        *status = 1;
        return NULL;
    }
    e->lib = l, e->prim = prim;
    for (int i = 0; i < n; i++) {
        e->args[i].arg = ids[i];
        if ((*status = l->memory_create(&e->args[i].memory, mds[i], l->engine, ptrs[i]))) {
            gt_exec_free(e);
            return NULL;
        }
        e->nargs++;
    }
    *status = 0;
    return e;
}

// The common signature of the device's stream commands: see npu/cpu/command.h.
int gt_exec_run(void *exec, void *stream) {
    const gt_exec *e = exec;
    return e->lib->primitive_execute(e->prim, stream, e->nargs, e->args);
}

void gt_exec_free(gt_exec *e) {
    if (!e) return;
    for (int i = 0; i < e->nargs; i++) e->lib->memory_destroy(e->args[i].memory);
    free(e);
}

void *gt_exec_run_address(void) { return (void *)gt_exec_run; }
