//go:build cgo && linux

#define _GNU_SOURCE
#include "pmix.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The layout of the structures has been the same since PMIx 2 (pmix_common.h): it is what the ABI of libpmix.so.2 promises.
typedef struct {
    char nspace[256];
    uint32_t rank;
} proc;

typedef struct {
    uint16_t type;
    union {
        bool flag;
        char *string;
        char room[64];
    } data;
} value;

typedef struct {
    char key[512];
    uint32_t flags;
    value value;
} info;

enum { BOOL = 1, STRING = 3, GLOBAL = 3, NOT_FOUND = -46 };

struct gt_pmix {
    int (*init)(proc *, info *, size_t);
    int (*put)(uint8_t, const char *, value *);
    int (*commit)(void);
    int (*fence)(const proc *, size_t, const info *, size_t);
    int (*get)(const proc *, const char *, const info *, size_t, value **);
    int (*finalize)(const info *, size_t);
    const char *(*explain)(int);
    proc me;
};

static void say(char *err, size_t n, const char *text) { snprintf(err, n, "%s", text ? text : "no reason given"); }

// RTLD_GLOBAL: the library loads components of its own, which need its symbols.
gt_pmix *gt_pmix_open(const char *path, char *err, size_t n) {
    dlerror();
    void *h = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!h) {
        say(err, n, dlerror());
        return NULL;
    }
    gt_pmix *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    struct {
        const char *name;
        void *at;
    } want[] = {{"PMIx_Init", &p->init},   {"PMIx_Put", &p->put}, {"PMIx_Commit", &p->commit},
                {"PMIx_Fence", &p->fence}, {"PMIx_Get", &p->get}, {"PMIx_Finalize", &p->finalize},
                {"PMIx_Error_string", &p->explain}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        void *f = dlsym(h, want[i].name);
        if (!f) {
            say(err, n, dlerror());
            free(p);
            return NULL;
        }
        memcpy(want[i].at, &f, sizeof f);
    }
    return p;
}

int gt_pmix_init(gt_pmix *p) { return p->init(&p->me, NULL, 0); }

int gt_pmix_put(gt_pmix *p, const char *key, const char *text) {
    value v;
    memset(&v, 0, sizeof v);
    v.type = STRING;
    v.data.string = (char *)text; // the library copies it
    return p->put(GLOBAL, key, &v);
}

int gt_pmix_commit(gt_pmix *p) { return p->commit(); }

int gt_pmix_fence(gt_pmix *p) {
    info collect;
    memset(&collect, 0, sizeof collect);
    strcpy(collect.key, "pmix.collect");
    collect.value.type = BOOL;
    collect.value.data.flag = true;
    return p->fence(NULL, 0, &collect, 1);
}

// The result is not freed: that function is a macro of the header in some versions, and this is called once.
int gt_pmix_get(gt_pmix *p, uint32_t rank, const char *key, char *out, size_t n) {
    proc other = p->me;
    other.rank = rank;
    value *v = NULL;
    int rc = p->get(&other, key, NULL, 0, &v);
    if (rc) return rc;
    if (!v || v->type != STRING || !v->data.string || strlen(v->data.string) >= n) return NOT_FOUND;
    strcpy(out, v->data.string);
    return 0;
}

int gt_pmix_finalize(gt_pmix *p) { return p->finalize(NULL, 0); }

const char *gt_pmix_explain(gt_pmix *p, int rc) {
    const char *text = p->explain(rc);
    return text ? text : "unknown error";
}
