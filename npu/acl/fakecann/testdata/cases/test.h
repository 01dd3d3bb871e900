// test.h: cases in C against the exports of the fake. A case runs in a process of its own: test NAME.
#ifndef TEST_H
#define TEST_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

typedef struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
} test_case;

extern test_case *cases;

#define CASE(NAME)                                                                              \
	static void case_##NAME(void);                                                          \
	static test_case entry_##NAME = {#NAME, case_##NAME, NULL};                             \
	__attribute__((constructor)) static void add_##NAME(void) {                             \
		entry_##NAME.next = cases;                                                      \
		cases = &entry_##NAME;                                                          \
	}                                                                                       \
	static void case_##NAME(void)

#define CHECK(COND)                                                                             \
	do {                                                                                    \
		if (!(COND)) {                                                                  \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #COND);    \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

#define WANT(CODE, CALL)                                                                                                          \
	do {                                                                                                                      \
		long long want_ = (CODE), got_ = (CALL);                                                                          \
		if (want_ != got_) {                                                                                              \
			const char *text_ = aclGetRecentErrMsg();                                                                 \
			fprintf(stderr, "%s:%d: %s: %lld, want %lld\n%s\n", __FILE__, __LINE__, #CALL, got_, want_, text_ ? text_ : ""); \
			exit(1);                                                                                                  \
		}                                                                                                                 \
	} while (0)

#define OK(CALL) WANT(0, CALL)

enum { F32 = 0, F16 = 1, I32 = 3, I64 = 9, BF16 = 27, H2D = 1, D2H = 2, D2D = 3 };

long long stat(const char *name);  // a number of the statistics
void violations(long long n);      // the case ends with so many; without it: 0
void open_device(int device);      // aclInit, aclrtSetDevice
void close_device(int device);     // nothing may be left
void *device_f32(const float *v, int n); // device memory with numbers
void read_f32(float *to, void *from, int n);
void *vec(void *base, int64_t n);  // an f32 tensor of one dim
void *vec_of(void *base, int64_t n, int dtype);
void *scalar(float v);
void pause_ms(int ms);
void *workspace(uint64_t bytes);   // NULL for 0

#endif
