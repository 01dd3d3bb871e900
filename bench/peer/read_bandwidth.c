// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0
//
// Upper bound on generation speed: how fast threads together read a buffer, again and again, each its own part, in wide loads. A buffer of
// the size of a model's weights shares their luck with caches and pages. One JSON line; the rate is the mean over the time.
//   cc -O3 -march=native -pthread read_bandwidth.c -o read_bandwidth
//   ./read_bandwidth BYTES THREADS SECONDS
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

typedef uint64_t wide __attribute__((vector_size(64)));

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static wide *memory;
static size_t lines;  // of 64 bytes, in all
static int threads;
static double seconds;
static pthread_barrier_t gate;
static volatile uint64_t sink;

static uint64_t read_part(size_t from, size_t to) {
    wide s[8] = {{0}};
    size_t i = from;
    for (; i + 8 <= to; i += 8) {
        // Far enough ahead that memory answers in time; past the end of the part it is harmless.
        __builtin_prefetch(&memory[i + 64]);
        __builtin_prefetch(&memory[i + 66]);
        __builtin_prefetch(&memory[i + 68]);
        __builtin_prefetch(&memory[i + 70]);
        for (int j = 0; j < 8; j++) s[j] ^= memory[i + j];
    }
    for (; i < to; i++) s[0] ^= memory[i];
    for (int j = 1; j < 8; j++) s[0] ^= s[j];
    return s[0][0] ^ s[0][7];
}

// work reads one part until the time is over and leaves its bytes a second.
static void *work(void *arg) {
    double *rate = arg;
    static int next;
    int id = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    size_t from = lines / threads * id, to = id == threads - 1 ? lines : lines / threads * (id + 1), passes = 0;
    for (size_t i = from; i < to; i++) memory[i] = (wide){i, 1, 2, 3, 4, 5, 6, 7};
    pthread_barrier_wait(&gate);
    double begin = now(), took;
    do {
        sink ^= read_part(from, to);
        passes++;
        took = now() - begin;
    } while (took < seconds);
    *rate = (double)(to - from) * 64 * passes / took;
    return NULL;
}

int main(int argc, char **argv) {
    size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    threads = argc > 2 ? atoi(argv[2]) : 0;
    seconds = argc > 3 ? atof(argv[3]) : 1;
    if (bytes < 65536 || threads < 1 || threads > 1024 || !(seconds > 0)) {
        fprintf(stderr, "usage: read_bandwidth BYTES THREADS SECONDS\n");
        return 2;
    }
    lines = bytes / 64;
    bytes = lines * 64;
    memory = mmap(NULL, bytes + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("mmap"), 1;
    madvise(memory, bytes, MADV_HUGEPAGE);
    pthread_barrier_init(&gate, NULL, threads);
    static pthread_t t[1024];
    static double rates[1024];
    double sum = 0;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, &rates[i])) return perror("pthread_create"), 1;
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        sum += rates[i];
    }
    printf("{\"peer\": \"read\", \"bytes\": %zu, \"threads\": %d, \"gb_s\": %.3f}\n", bytes, threads, sum / 1e9);
    return 0;
}
