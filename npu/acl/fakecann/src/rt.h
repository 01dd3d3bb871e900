// rt.h: what the parts of the fake share. One lock guards all state; kernels, copies and collectives run without it.
#ifndef FK_RT_H
#define FK_RT_H

#include <pthread.h>
#include <stdio.h>

#include "entry.h"
#include "exports.h"
#include "fake.h"

enum { FK_DEVICES = 64, FK_FUNCTION_TOTAL = FK_FUNCTIONS + 2 * FK_OPS };

// ---- table (generated) ----
enum fk_code { C_T, C_To, C_S, C_IA, C_FA, C_BA, C_TL, C_TLo, C_SL, C_str, C_dt, C_int, C_i8, C_i64, C_u64, C_f32, C_f64, C_bool };

typedef struct fk_desc { // an operator of the table
	const char *name;
	const fop *op; // NULL: not there
	int n;
	unsigned char codes[FAKE_ARGS];
	const char *names[FAKE_ARGS];
} fk_desc;

extern const char *const fk_function_names[FK_FUNCTIONS];
extern const fk_desc fk_ops[FK_OPS];

// ---- switches ----
typedef struct fk_switches {
	int version; // 81, 90
	int soc;
	char soc_name[32];
	int devices;
	int64_t memory; // of a device, bytes
	bool jitter, inline_, abort_, infnan, destroy_waits, two_ranks_hang;
	uint64_t seed;
	double time_scale;
	int util, dcmi;
	char stats[512];
} fk_switches;

extern fk_switches fk_sw;
double fk_delay_ms(const char *op); // of a task
bool fk_injected(int function, int32_t *code, bool *late);

// ---- lock ----
extern pthread_mutex_t fk_lock;
extern pthread_cond_t fk_changed; // broadcast when a task ended, an event was recorded, a connection changed
void fk_acquire(void);
void fk_release(void);
// fk_wait waits for fk_changed until a time (µs of fk_now; < 0: for ever). False: the time is over.
bool fk_wait(int64_t until);
int64_t fk_now(void); // µs, monotonic

// ---- errors ----
// fk_error keeps the text for aclGetRecentErrMsg of this thread, and returns the code. The text begins with one of CANN's codes, such as "EE1001: ".
int32_t fk_error(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
// fk_violation is fk_error for what a program must never do: it is printed and counted.
int32_t fk_violation(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *fk_current(void); // the function that this thread is in
const char *fk_name(int function);

// ---- counters ----
typedef struct fk_counters {
	int64_t calls[FK_FUNCTION_TOTAL];
	int64_t violations, leaked_executors;
	int64_t device_blocks, device_bytes, host_blocks, host_bytes, streams, events, contexts, comms;
	int64_t tensors, scalars, arrays, lists, executors, repeatable, graphs;
	int64_t threads, tasks;
	char first_violation[512];
} fk_counters;

extern fk_counters fk_count;

// ---- memory ----
enum fk_place { FK_UNKNOWN, FK_DEVICE, FK_PINNED, FK_FREED };

typedef struct fk_block {
	uintptr_t addr; // what the program sees; not mapped if it is device memory
	size_t bytes, mapped;
	char *mem; // where the bytes are
	enum fk_place place;
	int device;
} fk_block;

// fk_find returns the block that holds an address, or NULL. Lock held.
fk_block *fk_find(const void *p);
// fk_reach returns host memory for a range of device memory; NULL and a text if it is not wholly inside one live block of the device. Lock held.
char *fk_reach(int device, const void *p, size_t bytes, char *err, size_t n);
void fk_guards(int device); // checks the zones around all blocks of a device. Lock held
bool fk_take(int device, int64_t bytes); // charges memory that has no address (HCCL's buffers); false: none left. Lock held
void fk_give(int device, int64_t bytes);

// ---- devices, contexts ----
typedef struct fk_context {
	uint32_t magic;
	int device;
	bool primary;
	int32_t dead; // code that every call returns
	char why[400];
	int64_t options[16];
	struct fk_stream *stream; // the default one
	int refs;
} fk_context;

fk_context *fk_context_here(void); // of this thread, or NULL. Lock held
// fk_need returns the thread's context, or NULL and the code to return. Lock held.
fk_context *fk_need(int32_t *code);

// ---- streams ----
typedef struct fk_task {
	struct fk_task *next;
	const char *name;
	int32_t (*run)(struct fk_task *); // without lock; returns a runtime code
	void (*free)(struct fk_task *);
	bool always;    // runs on a stream that failed, too: events
	int32_t inject; // code that it fails with
	bool replayed;  // it belongs to a graph and is not freed after it ran
	struct fk_stream *stream;
	char why[400]; // text of the error
} fk_task;

typedef struct fk_stream {
	uint32_t magic;
	fk_context *ctx;
	fk_task *head, *tail;
	uint64_t issued, done;
	bool busy, quit, stop_on_failure, aborted;
	int32_t error; // for the next synchronisation
	char why[400];
	struct fk_graph *capture;
	pthread_t thread;
	pthread_cond_t wake;
	struct fk_stream *next;
	int id;
	uint64_t reporter; // thread that subscribed to its callbacks
} fk_stream;

// fk_stream_of checks a handle (NULL: the default stream) against the thread's context. Lock held.
fk_stream *fk_stream_of(void *handle, int32_t *code);
// fk_enqueue gives a task to a stream; the task is the stream's from then on. Lock held.
void fk_enqueue(fk_stream *s, fk_task *t);
// fk_drain waits for all that was issued. until as in fk_wait. Lock held. False: the time is over.
bool fk_drain(fk_stream *s, int64_t until);
int32_t fk_pending(fk_stream *s); // the error to be reported by a synchronisation, with its text. Lock held
bool fk_stream_dropped(fk_stream *s); // a task that waits should give up. Lock held
extern fk_stream *fk_streams;
void *fk_zalloc(size_t n);

// ---- nnopbase ----
void fk_tensor_gone(void *tensor); // a repeatable executor may need it

#endif
