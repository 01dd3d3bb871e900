// rt.h: what the parts of the fake share. One lock guards all state; kernels, copies and collectives run without it.
#ifndef FK_RT_H
#define FK_RT_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry.h"
#include "exports.h"
#include "fake.h"

enum { FK_DEVICES = 64, FK_FUNCTION_TOTAL = FK_FUNCTIONS + 2 * FK_OPS, FK_WHY = 400 };

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

// ---- switches.c ----
typedef struct fk_switches {
	int version; // 81, 90
	int soc;
	char soc_name[32];
	int devices;
	int64_t memory; // of a device, bytes
	bool jitter, in_line, abort, order, infnan, destroy_waits, two_ranks_hang;
	uint64_t seed;
	double time_scale;
	int util, dcmi;
	char stats[512];
} fk_switches;

extern fk_switches fk_sw;
int64_t fk_delay(const char *op);                         // µs that a task takes at least
bool fk_injected(int function, int32_t *code, bool *late); // lock held

// ---- state.c ----
void fk_acquire(void);
void fk_release(void);
void fk_broadcast(void);     // something changed: a task ended, an event was recorded, a peer came. Lock held
pthread_mutex_t *fk_mutex(void); // the lock, for conditions of their own
bool fk_wait(int64_t until); // waits for a change until a time of fk_now (< 0: for ever); false: the time is over. Lock held
int64_t fk_now(void);        // µs, monotonic
int64_t fk_until(int64_t ms); // the time in ms from now; < 0 stays for ever
void fk_sleep(int64_t us);
void *fk_zalloc(size_t n);
const char *fk_current(void); // the function that this thread is in
void fk_name(int function, char *out, size_t n);
int32_t fk_late(void); // the code that the task of this call shall fail with; 0: none. Reading takes it away

// fk_error keeps the text for aclGetRecentErrMsg of this thread and returns the code.
int32_t fk_error(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
// fk_violation is fk_error for what a program must never do: it is printed and counted, too.
int32_t fk_violation(int32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct fk_counters {
	int64_t calls[FK_FUNCTION_TOTAL];
	int64_t violations, leaked_executors, injected, pageable_copies, tasks, threads, device_threads[FK_DEVICES];
	int64_t device_blocks, device_bytes, host_blocks, host_bytes, streams, events, contexts, comms;
	int64_t tensors, scalars, arrays, lists, executors, repeatable, graphs;
	char first_violation[FK_WHY];
} fk_counters;

extern fk_counters fk_count;
void fk_save(void); // stats.c: writes the statistics to their file

// ---- handle.c: a handle is an address that is mapped nowhere and never used again, so that a stale one is always found ----
enum fk_kind { K_NONE, K_CONTEXT, K_STREAM, K_EVENT, K_GRAPH, K_TENSOR, K_SCALAR, K_ARRAY, K_TENSORS, K_SCALARS, K_EXECUTOR, K_COMM };

void *fk_handle(enum fk_kind kind, void *object);
void *fk_object(const void *handle, enum fk_kind kind); // NULL if it is not a live handle of that kind
const char *fk_handle_is(const void *handle);           // words for a message: "a tensor that was destroyed"
void fk_handle_end(const void *handle);

// ---- order.c ----
typedef struct fk_access fk_access;
typedef struct fk_clock {
	int n;
	uint64_t *v;
} fk_clock;

// ---- memory.c ----
enum fk_place { FK_UNKNOWN, FK_DEVICE, FK_PINNED, FK_FREED };

typedef struct fk_block {
	uintptr_t addr; // what the program sees; not mapped if it is device memory
	size_t bytes, mapped;
	char *mem, *region; // where the bytes are; region has the guard zones, too
	enum fk_place place, was;
	int device;
	bool touched; // since the guard zones were looked at
	struct fk_block *older; // in the quarantine
	fk_access *accesses;    // by tasks (order.c)
	int accesses_n, accesses_room;
} fk_block;

fk_block *fk_find(const void *p); // the block that holds an address, or NULL
// fk_reach returns host memory for a range of device memory; NULL and a text if it is not wholly inside one live block of the device.
char *fk_reach(int device, const void *p, int64_t bytes, char *err, size_t n);
void fk_guards(int device);              // checks the zones around all blocks that were touched
bool fk_take(int device, int64_t bytes); // charges memory that has no address (HCCL's buffers); false: none left
void fk_give(int device, int64_t bytes);
int64_t fk_memory_used(int device);

// ---- context.c ----
typedef struct fk_context {
	void *handle;
	int device;
	bool primary;
	int32_t dead; // code that every call returns
	char why[FK_WHY];
	int64_t options[16];
	bool option_set[16];
	struct fk_stream *stream; // the default one
} fk_context;

typedef struct fk_device {
	int refs; // SetDevice minus ResetDevice
	fk_context *primary;
	int sat_mode;
	int overflow; // values that saturated
	int64_t used;
	bool peers[FK_DEVICES];
} fk_device;

extern fk_device fk_devices[FK_DEVICES];
extern bool fk_initialised;
extern int64_t fk_options[16];
extern int32_t fk_wait_timeout; // s

fk_context *fk_need(int32_t *code);  // the thread's context, or NULL and the code to return
fk_context *fk_alive(int32_t *code); // the same, but a context that is dead is none
bool fk_deterministic(const fk_context *c);
void fk_die(fk_context *c, int32_t code, const char *why);

// ---- stream.c ----
typedef struct fk_task {
	struct fk_task *next;
	const char *name;
	int32_t (*run)(struct fk_task *); // without lock; returns a runtime code and writes why
	void (*free)(struct fk_task *);
	bool always;   // it runs on a stream that failed, too: events
	bool replayed; // it runs as part of a graph
	int32_t inject; // code that it fails with
	int64_t start, least; // µs: when it began, how long it shall take
	struct fk_stream *stream;
	char why[FK_WHY];
} fk_task;

typedef struct fk_stream {
	void *handle;
	fk_context *ctx;
	fk_task *head, *tail;
	uint64_t issued, done;
	bool quit, stop_on_failure, aborted;
	int32_t error; // for the next synchronisation
	char why[FK_WHY];
	struct fk_graph *capture;
	pthread_t thread;
	pthread_cond_t wake;
	struct fk_stream *next;
	uint64_t reporter; // thread that runs its callbacks
	int id; // in clocks
	fk_clock clock;
} fk_stream;

extern fk_stream *fk_streams;
fk_stream *fk_stream_new(fk_context *c, int32_t *code);
void fk_stream_end(fk_stream *s, bool force);
fk_stream *fk_stream_of(const void *handle, int32_t *code); // NULL: the default stream. NULL and the code to return if it cannot be used here
void fk_enqueue(fk_stream *s, fk_task *t);                  // the task belongs to the stream from then on
bool fk_drain(fk_stream *s, uint64_t ticket, int64_t until); // waits until so many tasks ended; false: the time is over
int32_t fk_pending(fk_stream *s);                           // the error that a synchronisation reports
bool fk_dropped(const fk_stream *s);                        // a task that waits shall give up
int32_t fk_run_task(fk_task *t);                            // with its delay. Lock not held
void fk_last(fk_task *t);                                   // waits until a task took as long as it shall
void fk_task_end(fk_task *t);

// ---- event.c, capture.c ----
typedef struct fk_event {
	void *handle;
	fk_context *ctx;
	uint32_t flags;
	uint64_t recorded, done; // numbers of records
	int64_t time;
	int refs; // tasks
	bool destroyed;
	struct fk_graph *graph; // it was recorded in
	fk_clock clock;
} fk_event;

bool fk_captures(fk_stream *s, fk_task *t); // puts a task into the graph that the stream records, if it does

// ---- order.c: nothing happens there unless FAKE_CANN_ORDER is set ----
int fk_order_id(void);
void fk_clock_free(fk_clock *c);
void fk_order_begin(fk_stream *s); // a task comes; its accesses follow
void fk_order_record(fk_stream *s, fk_event *e);
void fk_order_wait(fk_stream *s, const fk_event *e);
void fk_order_host_event(const fk_event *e); // the host knows that it is complete
void fk_order_host_stream(const fk_stream *s);
void fk_order_access(fk_stream *s, const char *name, const void *p, int64_t bytes, bool write);
void fk_order_tensor(fk_stream *s, const char *name, const ft *t, bool write);
void fk_order_host_access(const char *name, const void *p, int64_t bytes, bool write);
void fk_order_free(fk_block *b, bool checked);

// ---- objects.c, executor.c ----
typedef struct fk_held { // begins every object of nnopbase
	void *handle;
	int needed; // by repeatable executors
	void *owner; // the list that it belongs to
} fk_held;

typedef struct fk_tensor {
	fk_held held;
	ft t;
} fk_tensor;

typedef struct fk_scalar {
	fk_held held;
	fscalar s;
} fk_scalar;

typedef struct fk_array {
	fk_held held;
	int code; // C_IA, C_FA, C_BA
	farray a;
} fk_array;

typedef struct fk_list { // of tensors or scalars
	fk_held held;
	int64_t n;
	void **items; // handles
} fk_list;

// fk_binding is the arguments of an executor: copies of what the caller gave. A launch holds it while it runs.
typedef struct fk_binding {
	int refs;
	fcall call; // tensors have device addresses
	struct fk_binding *parent; // shares all but the tensors with this one
	int tensors, scalars, arrays, lists, slists;
	ft *t; // all tensors, those of lists, too
	fscalar *s;
	farray *a;
	flist *l;
	fslist *sl;
	void **pointers;
	char *bytes;
	void *memory; // what the above lies in
} fk_binding;

typedef struct fk_executor {
	void *handle;
	int op, device;
	fk_context *ctx;
	bool repeatable, used;
	pthread_t thread;
	uint64_t number;
	int64_t workspace;
	fk_binding *b;
	int held; // number of handles below
	void *holds[FAKE_ARGS];
} fk_executor;

fk_binding *fk_bind(const fk_desc *d, const fk_raw *raw, int32_t *code, char *err, size_t n);
fk_binding *fk_binding_copy(const fk_desc *d, fk_binding *b);
void *fk_call_on(const fk_desc *d, const fk_binding *b, ft *t, fcall *call);
void fk_unbind(fk_binding *b);
int32_t fk_launch(fk_executor *e, fk_stream *s, void *workspace); // launch.c. Lock held

#endif
