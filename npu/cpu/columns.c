//go:build cgo && linux

#define _GNU_SOURCE
#include "columns.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

// libgomp, if the library has loaded it: the rows are then divided among the compute team.
static void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*thread_num)(void), (*num_threads)(void), (*max_threads)(void);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void resolve(void) {
    void *g = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!g) return;
    *(void **)&thread_num = dlsym(g, "omp_get_thread_num");
    *(void **)&num_threads = dlsym(g, "omp_get_num_threads");
    *(void **)&max_threads = dlsym(g, "omp_get_max_threads");
    if (thread_num && num_threads && max_threads) *(void **)&parallel = dlsym(g, "GOMP_parallel");
}

// rows fills the columns of output rows lo to hi, numbered across all images.
static void rows(const gt_columns *c, int64_t lo, int64_t hi) {
    const int64_t tap = c->pixel, row = c->kw * tap;
    for (int64_t r = lo; r < hi; r++) {
        const char *image = c->x + r / c->oh * c->h * c->w * tap;
        char *out = c->col + r * c->ow * c->kh * row;
        for (int64_t ox = 0; ox < c->ow; ox++)
            for (int64_t i = 0; i < c->kh; i++, out += row) {
                int64_t y = r % c->oh * c->sh + i * c->dh - c->top;
                for (int64_t j = 0; j < c->kw; j++) {
                    int64_t x = ox * c->sw + j * c->dw - c->left;
                    if (y < 0 || y >= c->h || x < 0 || x >= c->w) memset(out + j * tap, 0, tap);
                    else memcpy(out + j * tap, image + (y * c->w + x) * tap, tap);
                }
            }
    }
}

static void part(void *p) {
    const gt_columns *c = p;
    int64_t n = c->n * c->oh, t = thread_num(), of = num_threads();
    rows(c, n * t / of, n * (t + 1) / of);
}

int gt_columns_run(void *columns, void *stream) {
    (void)stream;
    gt_columns *c = columns;
    pthread_once(&once, resolve);
    int t = parallel ? max_threads() : 1;
    if (t > 1) parallel(part, c, (unsigned)t, 0);
    else rows(c, 0, c->n * c->oh);
    return 0;
}
