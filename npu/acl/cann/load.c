//go:build cgo && linux

#define _GNU_SOURCE
#include "load.h"
#include <dlfcn.h>
#include <stdio.h>

// Not RTLD_GLOBAL: several sets of libraries in one process, as the tests have them, must not resolve each other's symbols.
void *gt_dlopen(const char *path, char *err, size_t n) {
    dlerror();
    void *h = dlopen(path, RTLD_LAZY);
    if (!h) {
        const char *why = dlerror();
        snprintf(err, n, "%s", why ? why : "no reason given");
    }
    return h;
}

void *gt_dlsym(void *handle, const char *name) { return dlsym(handle, name); }

void gt_where(const void *address, char *path, size_t n) {
    Dl_info info;
    path[0] = 0;
    if (address && dladdr(address, &info) && info.dli_fname) snprintf(path, n, "%s", info.dli_fname);
}
