//go:build cgo && linux

#ifndef GT_LOAD_H
#define GT_LOAD_H

#include <stddef.h>

// gt_dlopen opens a library; where it cannot, err has dlerror's text.
void *gt_dlopen(const char *path, char *err, size_t n);
// gt_dlsym returns a symbol, or NULL.
void *gt_dlsym(void *handle, const char *name);
// gt_where writes the path of the library that has the address; "" if it is not known.
void gt_where(const void *address, char *path, size_t n);

#endif
