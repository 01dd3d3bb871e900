// A stream's batch in C: kernels of all packages share one signature, and one loop runs them.
#ifndef GT_COMMAND_H
#define GT_COMMAND_H
#include <stddef.h>
#include <stdint.h>

typedef int (*gt_fn)(void *self, void *stream);
typedef struct { gt_fn fn; void *self; } gt_command;
typedef struct { int64_t begin, dur; } gt_time; // nanoseconds, CLOCK_MONOTONIC

// A team of threads for long runs of commands that have the function fn: use(self) before, use(NULL) after. join runs the first of n such commands as one, and
// returns how many that were, 0 if it runs none.
typedef struct {
	gt_fn fn;
	void (*use)(void *self);
	int (*join)(const void *commands, int n);
	void *self;
} gt_team;

// The least run for a team. Between primitives of the library, where runs are short, the threads of OpenMP are awake, and others would compete with them.
enum { GT_TEAM_RUN = 16 };

// Runs n commands in order and stops at the first that fails. Returns the number that succeeded; *status is that of the failed one. Once *skip
// is not 0 the rest is skipped and counts as succeeded; skip may be NULL, and so may team.
int gt_run(const gt_command *c, int n, void *stream, gt_time *times, int *status, const uint32_t *skip, const gt_team *team);
int64_t gt_now(void);

// A sequence of commands: gt_sequence_run stops at the first that fails.
typedef struct { int n, failed; gt_command c[]; } gt_sequence;
int gt_sequence_run(void *sequence, void *stream);

// A command that writes zeros.
typedef struct { void *at; size_t bytes; } gt_zero;
int gt_zero_run(void *zero, void *stream);
#endif
