//go:build cgo && linux

#define _GNU_SOURCE
#include "lib.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// dnnl_version_t; its tail differs between versions and is not used.
typedef struct { int major, minor, patch; const char *hash; } gt_version;

static int fail(char *err, size_t n, const char *what, const char *arg) {
    snprintf(err, n, "%s%s", what, arg ? arg : "");
    return 0;
}

// sym sets *p. A missing symbol is an error unless it is optional.
static int sym(gt_lib *l, void *p, const char *name, int optional, char *err, size_t n) {
    void *f = dlsym(l->handle, name);
    memcpy(p, &f, sizeof f);
    return f || optional ? 1 : fail(err, n, "the library has no symbol ", name);
}

static int load_common(gt_lib *l, char *err, size_t n) {
    struct { void *p; const char *name; int optional; } t[] = {
        {&l->engine_create, "dnnl_engine_create"},
        {&l->stream_create, "dnnl_stream_create"},
        {&l->stream_destroy, "dnnl_stream_destroy"},
        {&l->stream_wait, "dnnl_stream_wait"},
        {&l->attr_create, "dnnl_primitive_attr_create"},
        {&l->attr_destroy, "dnnl_primitive_attr_destroy"},
        {&l->attr_set_scratchpad_mode, "dnnl_primitive_attr_set_scratchpad_mode"},
        {&l->attr_set_post_ops, "dnnl_primitive_attr_set_post_ops"},
        {&l->post_ops_create, "dnnl_post_ops_create"},
        {&l->post_ops_destroy, "dnnl_post_ops_destroy"},
        {&l->append_eltwise, "dnnl_post_ops_append_eltwise"},
        {&l->append_sum, "dnnl_post_ops_append_sum"},
        {&l->pd_query, "dnnl_primitive_desc_query"},
        {&l->pd_query_md, "dnnl_primitive_desc_query_md"},
        {&l->pd_destroy, "dnnl_primitive_desc_destroy"},
        {&l->primitive_create, "dnnl_primitive_create"},
        {&l->primitive_destroy, "dnnl_primitive_destroy"},
        {&l->primitive_execute, "dnnl_primitive_execute"},
        {&l->memory_create, "dnnl_memory_create"},
        {&l->memory_destroy, "dnnl_memory_destroy"},
        {&l->md_equal, "dnnl_memory_desc_equal"},
        {&l->md_size, "dnnl_memory_desc_get_size"},
        {&l->md_permute, "dnnl_memory_desc_permute_axes"},
        {&l->reorder_pd, "dnnl_reorder_primitive_desc_create"},
        {&l->isa, "dnnl_get_effective_cpu_isa"},
        {&l->set_max_isa, "dnnl_set_max_cpu_isa", 1},
        {&l->tag_name, "dnnl_fmt_tag2str"},
        {&l->isa_name, "dnnl_cpu_isa2str", 1},
        {&l->set_cache, "dnnl_set_primitive_cache_capacity", 1},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        if (!sym(l, t[i].p, t[i].name, t[i].optional, err, n)) return 0;
    return 1;
}

// Constructors that only some primitives need are optional: the primitive reports their absence.
static int load_api(gt_lib *l, char *err, size_t n) {
    int v2 = l->major == 2;
    struct { void *p; const char *two, *three; int optional; } t[] = {
        {&l->md_strides, "dnnl_memory_desc_init_by_strides", "dnnl_memory_desc_create_with_strides"},
        {&l->md_tag, "dnnl_memory_desc_init_by_tag", "dnnl_memory_desc_create_with_tag"},
        {&l->md_destroy, NULL, "dnnl_memory_desc_destroy"},
        {&l->md_clone, NULL, "dnnl_memory_desc_clone"},
        {&l->md_query, NULL, "dnnl_memory_desc_query"},
        {&l->pd_create, "dnnl_primitive_desc_create", NULL},
        {&l->iter_create, "dnnl_primitive_desc_iterator_create", NULL},
        {&l->iter_next, "dnnl_primitive_desc_iterator_next", NULL},
        {&l->iter_fetch, "dnnl_primitive_desc_iterator_fetch", NULL},
        {&l->iter_destroy, "dnnl_primitive_desc_iterator_destroy", NULL},
        {&l->next_impl, NULL, "dnnl_primitive_desc_next_impl"},
        {&l->conv_fwd, "dnnl_dilated_convolution_forward_desc_init", "dnnl_convolution_forward_primitive_desc_create"},
        {&l->conv_bwd_data, "dnnl_dilated_convolution_backward_data_desc_init", "dnnl_convolution_backward_data_primitive_desc_create"},
        {&l->conv_bwd_weights, "dnnl_dilated_convolution_backward_weights_desc_init", "dnnl_convolution_backward_weights_primitive_desc_create"},
        {&l->pool_fwd, "dnnl_pooling_v2_forward_desc_init", "dnnl_pooling_forward_primitive_desc_create", 1},
        {&l->pool_bwd, "dnnl_pooling_v2_backward_desc_init", "dnnl_pooling_backward_primitive_desc_create", 1},
        {&l->softmax_fwd, "dnnl_softmax_v2_forward_desc_init", "dnnl_softmax_forward_primitive_desc_create", 1},
        {&l->softmax_bwd, "dnnl_softmax_v2_backward_desc_init", "dnnl_softmax_backward_primitive_desc_create", 1},
        {&l->matmul, "dnnl_matmul_desc_init", "dnnl_matmul_primitive_desc_create"},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const char *name = v2 ? t[i].two : t[i].three;
        if (name && !sym(l, t[i].p, name, t[i].optional, err, n)) return 0;
    }
    return 1;
}

const char *gt_tag_name(gt_lib *l, int tag) {
    const char *s = tag < 4000 ? l->tag_name(tag) : NULL;
    return s && strncmp(s, "unknown", 7) ? s : NULL;
}

// The numbers of format tags differ between versions; their names do not.
static int find_tag(gt_lib *l, const char *name) {
    const char *s;
    for (int i = 2; (s = gt_tag_name(l, i)); i++)
        if (!strcmp(s, name)) return i;
    return -1;
}

// libgomp comes with the library: use the loaded copy, and never load another one.
static void load_omp(gt_lib *l) {
    void *g = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!g) g = dlopen("libiomp5.so", RTLD_NOW | RTLD_NOLOAD);
    if (!g) return;
    void *f = dlsym(g, "omp_set_num_threads");
    memcpy(&l->omp_set_num_threads, &f, sizeof f);
    f = dlsym(g, "omp_get_max_threads");
    memcpy(&l->omp_get_max_threads, &f, sizeof f);
}

static int init(gt_lib *l, char *err, size_t n) {
    const gt_version *(*version)(void);
    if (!sym(l, &version, "dnnl_version", 0, err, n)) return 0;
    const gt_version *v = version();
    l->major = v->major, l->minor = v->minor, l->patch = v->patch;
    snprintf(l->hash, sizeof l->hash, "%s", v->hash ? v->hash : "");
    if (l->major != 2 && l->major != 3) return fail(err, n, "only versions 2 and 3 of oneDNN are supported", NULL);
    if (!load_common(l, err, n) || !load_api(l, err, n)) return 0;
    if ((l->tag_16c = find_tag(l, "aBcd16b")) < 0) return fail(err, n, "the library does not know the layout aBcd16b", NULL);
    if ((l->tag_8c = find_tag(l, "aBcd8b")) < 0) return fail(err, n, "the library does not know the layout aBcd8b", NULL);
    int s = l->engine_create(&l->engine, 1 /* cpu */, 0);
    if (s) return fail(err, n, "dnnl_engine_create failed", NULL);
    load_omp(l);
    return 1;
}

gt_lib *gt_open(const char *path, char *err, size_t n) {
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) {
        fail(err, n, dlerror(), NULL);
        return NULL;
    }
    gt_lib *l = calloc(1, sizeof *l);
    l->handle = h;
    if (!init(l, err, n)) {
        // Not dlclose: an OpenMP library that has started threads must not be unmapped.
        free(l);
        return NULL;
    }
    return l;
}

int gt_setenv(const char *key, const char *value) { return setenv(key, value, 0); }

void gt_threads(gt_lib *l, int n) {
    if (l->omp_set_num_threads && n > 0) l->omp_set_num_threads(n);
}

int gt_stream(gt_lib *l, void **s) { return l->stream_create(s, l->engine, 1 /* default flags */); }
void gt_stream_free(gt_lib *l, void *s) { l->stream_destroy(s); }

int gt_isa(gt_lib *l) { return l->isa(); }
const char *gt_isa_name(gt_lib *l, int isa) { return l->isa_name ? l->isa_name(isa) : NULL; }
