// hccl.h: collectives. The rank that makes the root information runs a hub, a thread that all ranks connect to over a unix socket, in one process or in
// several.
// A collective is a request of each rank to the hub, which computes when all are there and answers.
#ifndef FK_HCCL_H
#define FK_HCCL_H

#include "rt.h"

// HcclResult.
enum { HC_OK, HC_PARA, HC_PTR, HC_MEMORY, HC_INTERNAL, HC_NOT_SUPPORT, HC_NOT_FOUND, HC_UNAVAIL, HC_SYSCALL, HC_TIMEOUT, HC_OPEN_FILE, HC_TCP_CONNECT,
	HC_RUNTIME = 15, HC_NETWORK = 19, HC_AGAIN = 20, HC_REMOTE = 21, HC_SUSPENDING = 22, HC_OOM = 24 };

enum { HT_I8, HT_I16, HT_I32, HT_F16, HT_F32, HT_I64, HT_U64, HT_U8, HT_U16, HT_U32, HT_F64, HT_BF16 };
enum { HR_SUM, HR_PROD, HR_MAX, HR_MIN };

enum hub_kind {
	HK_HELLO, HK_BYE, HK_ALL_REDUCE, HK_REDUCE, HK_REDUCE_SCATTER, HK_REDUCE_SCATTER_V, HK_ALL_GATHER, HK_ALL_GATHER_V, HK_BROADCAST, HK_SCATTER, HK_ALL_TO_ALL,
	HK_ALL_TO_ALL_V, HK_BARRIER, HK_SEND, HK_RECV
};

extern const char *const hub_names[];

enum { HUB_MAGIC = 0x46414b45, ROOT_BYTES = 4108, NAME_BYTES = 128 };

// frame is a request or an answer. nmeta numbers and then bytes follow it. An answer with a status carries a text.
typedef struct frame {
	uint32_t magic, kind;
	uint64_t id;    // of the request, by its rank
	uint64_t order; // number of the collective in the communicator; of a transfer: its tag
	uint64_t count;
	int32_t dtype, op;
	uint32_t root; // or the peer of a transfer
	uint32_t deterministic;
	uint64_t nmeta, bytes;
	int32_t status; // HcclResult
	uint32_t rank, ranks, device;
} frame;

// message is a frame with what follows it.
typedef struct message {
	frame f;
	uint64_t *meta;
	char *data;
	struct message *next;
} message;

// hccl_wire.c
bool wire_send(int fd, const frame *f, const uint64_t *meta, const void *data);
message *wire_receive(int fd); // NULL: the other end is gone
void message_free(message *m);

// hccl_hub.c
bool hub_start(const char *name);          // listens on an abstract unix socket
int hub_connect(const char *name, int64_t until); // -1: nobody listens
void hub_retire(const char *name);         // no more ranks will come

// hccl_compute.c: compute makes the answer for a rank from the requests of all, in data and bytes that the caller frees.
typedef struct answer {
	char *data;
	uint64_t bytes;
} answer;

int64_t hccl_size(int dtype); // 0: unknown
bool hub_compute(message *const *m, int n, answer *out, char *err, size_t room);

// hccl_config.c
typedef struct hccl_settings {
	int64_t buffer_mb;
	bool deterministic;
	double connect_s, exec_s; // exec_s 0: never
	char name[NAME_BYTES];
} hccl_settings;

int32_t hccl_read_config(const unsigned char *config, hccl_settings *s); // config may be NULL: environment only
extern int32_t hccl_deterministic_option;

// hccl_comm.c
typedef struct fk_comm {
	void *handle;
	int fd, rank, ranks, device;
	hccl_settings set;
	uint64_t orders, ids, used; // collectives, requests, tasks that were enqueued
	uint64_t finished;
	bool broken, suspended, ending, reader_ended;
	message *answers;
	pthread_t reader;
	pthread_mutex_t writing;
} fk_comm;

fk_comm *comm_of(const void *handle, int32_t *code);
// comm_stream checks a stream for use with a communicator. Lock held.
fk_stream *comm_stream(fk_comm *c, const void *stream, int32_t *code);
int64_t comm_until(double seconds);                          // the scaled time from now; 0: never
uint64_t comm_request(fk_comm *c, frame *f, const uint64_t *meta, const void *data); // lock not held; the id
message *comm_answer(fk_comm *c, uint64_t id);               // taken out of the answers; NULL: none yet. Lock held
int32_t comm_init(int ranks, const unsigned char *root, int rank, int device, const unsigned char *config, void **out); // lock not held
int32_t comm_root(unsigned char *out, const char *fixed_name);

#endif
