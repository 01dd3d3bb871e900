// entry.h: what the generated exports call.
#ifndef FK_ENTRY_H
#define FK_ENTRY_H

#include <stdint.h>

typedef union fk_raw { // an argument of an operator as the caller gave it
	const void *p;
	int64_t i;
	double f;
} fk_raw;

#define FK_SHARED __attribute__((visibility("default")))

FK_SHARED void fk_loaded(int version);    // 81, 90
FK_SHARED int32_t fk_enter(int function); // counts the call; not 0: an injected error to be returned
FK_SHARED void fk_leave(int function);
FK_SHARED int32_t fk_phase1(int op, const fk_raw *raw, uint64_t *bytes, void **executor);
FK_SHARED int32_t fk_phase2(int op, void *workspace, uint64_t bytes, void *executor, void *stream);

#endif
