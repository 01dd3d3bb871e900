// Communicators: root information, initialisation, the end.
#include <sys/socket.h>
#include <unistd.h>

#include "hccl.h"

// ---- root information: a magic, the length and text of the socket's name, bytes that depend on a nonce, a sum over all ----

enum { ROOT_MAGIC = 0x4c434346, NAME_AT = 16, NONCE_AT = 8, FILL_AT = 256, SUM_AT = ROOT_BYTES - 4 };

static uint32_t sum_of(const unsigned char *p) {
	uint32_t h = 2166136261u;
	for (int i = 0; i < SUM_AT; i++) h = (h ^ p[i]) * 16777619u;
	return h;
}

int32_t comm_root(unsigned char *out, const char *fixed_name) {
	static int made;
	uint64_t nonce, state;
	uint32_t magic = ROOT_MAGIC;
	char name[100];
	fk_acquire();
	nonce = state = fake_random(&fk_sw.seed) ^ (uint64_t)fk_now();
	snprintf(name, sizeof name, "fakecann-hccl-%d-%d-%08x", (int)getpid(), made++, (unsigned)nonce);
	fk_release();
	if (fixed_name) snprintf(name, sizeof name, "%s", fixed_name);
	memset(out, 0, ROOT_BYTES);
	memcpy(out, &magic, 4);
	memcpy(out + NONCE_AT, &nonce, 8);
	memcpy(out + NAME_AT, name, strlen(name) + 1);
	for (int i = FILL_AT; i < SUM_AT; i++) out[i] = (unsigned char)(fake_random(&state) | 1); // no byte is zero: a copy that stops at one is found
	uint32_t sum = sum_of(out);
	memcpy(out + SUM_AT, &sum, 4);
	return HC_OK;
}

static const char *root_name(const unsigned char *root) {
	uint32_t magic, sum;
	memcpy(&magic, root, 4);
	memcpy(&sum, root + SUM_AT, 4);
	return magic == ROOT_MAGIC && sum == sum_of(root) ? (const char *)root + NAME_AT : NULL;
}

// here is the device of the thread; -1 with HC_RUNTIME if there is none.
static int here(int32_t *code) {
	fk_acquire();
	fk_context *c = fk_alive(code);
	int device = c ? c->device : -1;
	fk_release();
	if (!c) *code = HC_RUNTIME;
	return device;
}

int32_t f_HcclGetRootInfo(void *out) {
	int32_t code = HC_OK;
	if (here(&code) < 0) return code;
	if (!out) return fk_error(HC_PTR, "EI0003: rootInfo is null");
	code = comm_root(out, NULL);
	if (!hub_start(root_name(out))) return fk_error(HC_TCP_CONNECT, "EI0019: the socket cannot be bound");
	return code;
}

// ---- communicators ----

fk_comm *comm_of(const void *handle, int32_t *code) {
	fk_comm *c = fk_object(handle, K_COMM);
	*code = HC_OK;
	if (!handle) {
		*code = fk_error(HC_PTR, "EI0003: comm is null");
	} else if (!c) {
		*code = fk_violation(HC_PARA, "EI0003: comm is %s", fk_handle_is(handle));
	}
	return c;
}

fk_stream *comm_stream(fk_comm *c, const void *stream, int32_t *code) {
	fk_stream *s = NULL;
	if (!stream) {
		*code = fk_error(HC_PTR, "EI0003: stream is null");
	} else if (c->suspended) {
		*code = fk_error(HC_SUSPENDING, "EI0003: the communicator is suspended");
	} else if (!(s = fk_stream_of(stream, code))) {
		*code = HC_RUNTIME;
	} else if (s->ctx->device != c->device) {
		*code = fk_violation(HC_PARA, "EI0003: the stream is of device %d, the communicator of device %d", s->ctx->device, c->device);
		s = NULL;
	}
	return s;
}

int64_t comm_until(double seconds) { return seconds <= 0 ? -1 : fk_now() + (int64_t)(seconds * fk_sw.time_scale * 1e6); }

uint64_t comm_request(fk_comm *c, frame *f, const uint64_t *meta, const void *data) {
	pthread_mutex_lock(&c->writing);
	f->magic = HUB_MAGIC;
	f->id = ++c->ids;
	f->rank = (uint32_t)c->rank;
	f->ranks = (uint32_t)c->ranks;
	f->device = (uint32_t)c->device;
	f->deterministic = c->set.deterministic;
	wire_send(c->fd, f, meta, data); // if the hub is gone, no answer comes: that is how the real one tells it
	pthread_mutex_unlock(&c->writing);
	return f->id;
}

message *comm_answer(fk_comm *c, uint64_t id) {
	for (message **p = &c->answers; *p; p = &(*p)->next) {
		message *m = *p;
		if (m->f.id != id) continue;
		*p = m->next;
		return m;
	}
	return NULL;
}

static void *read_answers(void *arg) {
	fk_comm *c = arg;
	for (message *m; (m = wire_receive(c->fd));) {
		fk_acquire();
		m->next = c->answers;
		c->answers = m;
		fk_broadcast();
		fk_release();
	}
	fk_acquire();
	c->broken = true;
	fk_broadcast();
	fk_release();
	return NULL;
}

static void comm_free(fk_comm *c) {
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->reader, NULL);
	close(c->fd);
	while (c->answers) {
		message *m = c->answers;
		c->answers = m->next;
		message_free(m);
	}
	pthread_mutex_destroy(&c->writing);
	free(c);
}

static bool starting[FK_DEVICES];

// take_device notes that a device initialises a communicator, and charges its buffers.
static int32_t take_device(int device, const hccl_settings *s) {
	int32_t code = HC_OK;
	fk_acquire();
	if (starting[device]) {
		code = fk_violation(HC_UNAVAIL, "EI0003: device %d initialises another communicator at the same time", device);
	} else if (!fk_take(device, 2 * s->buffer_mb << 20)) {
		code = fk_error(HC_OOM, "EL0004: Failed to allocate 2 buffers of %lld MB for the communicator", (long long)s->buffer_mb);
	} else {
		starting[device] = true;
	}
	fk_release();
	return code;
}

// meet says hello to the hub and waits for all.
static int32_t meet(fk_comm *c, const char *name) {
	int64_t until = comm_until(c->set.connect_s + 20);
	c->fd = hub_connect(name, until);
	if (c->fd < 0) return fk_error(HC_TIMEOUT, "EI0015: rank %d could not reach the root within %g s", c->rank, c->set.connect_s);
	if (pthread_create(&c->reader, NULL, read_answers, c)) abort();
	frame f = {.kind = HK_HELLO};
	uint64_t id = comm_request(c, &f, NULL, NULL);
	int32_t code = HC_OK;
	fk_acquire();
	message *m;
	while (!(m = comm_answer(c, id)) && fk_wait(until)) {}
	if (!m) m = comm_answer(c, id);
	if (!m) {
		code = fk_error(HC_TIMEOUT, "EI0015: rank %d: not all of the %d ranks came within %g s", c->rank, c->ranks, c->set.connect_s);
	} else if (m->f.status) {
		code = fk_error(m->f.status, "EI0014: rank %d: %s", c->rank, m->data);
	}
	fk_release();
	message_free(m);
	return code;
}

int32_t comm_init(int ranks, const unsigned char *root, int rank, int device, const unsigned char *config, void **out) {
	hccl_settings set;
	const char *name = root_name(root);
	fk_acquire();
	int32_t code = hccl_read_config(config, &set);
	if (!code && !name) code = fk_violation(HC_PARA, "EI0003: rootInfo is not what HcclGetRootInfo wrote: all of its %d bytes must arrive", ROOT_BYTES);
	fk_release();
	if (!code && (ranks < 1 || rank < 0 || rank >= ranks)) code = fk_error(HC_PARA, "EI0003: rank %d of %d", rank, ranks);
	if (!code) code = take_device(device, &set);
	if (code) return code;
	fk_comm *c = fk_zalloc(sizeof *c);
	*c = (fk_comm){.fd = -1, .rank = rank, .ranks = ranks, .device = device, .set = set};
	pthread_mutex_init(&c->writing, NULL);
	if (!c->set.name[0]) snprintf(c->set.name, NAME_BYTES, "%s_%d", name, ranks);
	code = meet(c, name);
	fk_acquire();
	starting[device] = false;
	if (code) {
		fk_give(device, 2 * set.buffer_mb << 20);
	} else {
		*out = c->handle = fk_handle(K_COMM, c);
		fk_count.comms++;
	}
	fk_release();
	if (!code) return HC_OK;
	if (rank == 0) hub_retire(name);
	if (c->fd >= 0) {
		comm_free(c);
	} else {
		free(c);
	}
	return code;
}

int32_t f_HcclCommInitRootInfoConfig(uint32_t ranks, void *root, uint32_t rank, void *config, void *out) {
	int32_t code;
	int device = here(&code);
	if (device < 0) return code;
	if (!root || !out) return fk_error(HC_PTR, "EI0003: %s is null", root ? "comm" : "rootInfo");
	if (!config) return fk_error(HC_PTR, "EI0003: config is null");
	return comm_init((int)ranks, root, (int)rank, device, config, out);
}

int32_t f_HcclCommInitRootInfo(uint32_t ranks, void *root, uint32_t rank, void *out) {
	int32_t code;
	int device = here(&code);
	if (device < 0) return code;
	if (!root || !out) return fk_error(HC_PTR, "EI0003: %s is null", root ? "comm" : "rootInfo");
	return comm_init((int)ranks, root, (int)rank, device, NULL, out);
}

// one is a rank of HcclCommInitAll, in a thread of its own.
typedef struct one {
	unsigned char *root;
	int ranks, rank, device;
	void *comm;
	int32_t code;
} one;

static void *init_one(void *arg) {
	one *o = arg;
	o->code = comm_init(o->ranks, o->root, o->rank, o->device, NULL, &o->comm);
	return NULL;
}

int32_t f_HcclCommInitAll(uint32_t n, void *devices, void *comms) {
	int32_t code;
	unsigned char root[ROOT_BYTES];
	if (here(&code) < 0) return code;
	if (!devices || !comms) return fk_error(HC_PTR, "EI0003: %s is null", devices ? "comms" : "devices");
	if (n < 1 || n > (uint32_t)fk_sw.devices) return fk_error(HC_PARA, "EI0003: %u devices of %d", n, fk_sw.devices);
	for (uint32_t i = 0; i < n; i++) {
		int32_t d = ((int32_t *)devices)[i];
		bool again = d < 0 || d >= fk_sw.devices;
		for (uint32_t k = 0; k < i; k++) again |= ((int32_t *)devices)[k] == d;
		if (again) return fk_error(HC_PARA, "EI0003: device %d does not exist or is there twice", d);
	}
	comm_root(root, NULL);
	if (!hub_start(root_name(root))) return fk_error(HC_TCP_CONNECT, "EI0019: the socket cannot be bound");
	one *all = fk_zalloc(n * sizeof *all);
	pthread_t *t = fk_zalloc(n * sizeof *t);
	for (uint32_t i = 0; i < n; i++) {
		all[i] = (one){.root = root, .ranks = (int)n, .rank = (int)i, .device = ((int32_t *)devices)[i]};
		if (pthread_create(&t[i], NULL, init_one, &all[i])) abort();
	}
	code = HC_OK;
	for (uint32_t i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		((void **)comms)[i] = all[i].comm;
		if (all[i].code) code = all[i].code;
	}
	free(all);
	free(t);
	return code;
}

// farewell waits until all ranks destroy their communicator, or the time is over: the real function may block when a peer is gone.
static void farewell(fk_comm *c) {
	frame f = {.kind = HK_BYE};
	uint64_t id = comm_request(c, &f, NULL, NULL);
	int64_t until = comm_until(c->set.exec_s);
	fk_acquire();
	message *m;
	while (!(m = comm_answer(c, id)) && fk_wait(until)) {}
	fk_release();
	message_free(m);
}

int32_t f_HcclCommDestroy(void *handle) {
	int32_t code;
	fk_acquire();
	fk_comm *c = comm_of(handle, &code);
	if (c && c->finished < c->used) {
		code = fk_violation(HC_AGAIN, "EI0003: %llu operations of the communicator have not ended: synchronise its streams first",
			(unsigned long long)(c->used - c->finished));
		c = NULL;
	}
	if (c) {
		fk_handle_end(handle);
		fk_count.comms--;
		fk_give(c->device, 2 * c->set.buffer_mb << 20);
	}
	fk_release();
	if (!c) return code;
	if (fk_sw.destroy_waits) farewell(c);
	comm_free(c);
	return HC_OK;
}

static int32_t get_u32(void *handle, void *out, bool rank) {
	int32_t code;
	fk_acquire();
	fk_comm *c = comm_of(handle, &code);
	if (c && !out) code = fk_error(HC_PTR, "EI0003: the result is null");
	if (!code) *(uint32_t *)out = (uint32_t)(rank ? c->rank : c->ranks);
	fk_release();
	return code;
}

int32_t f_HcclGetRankSize(void *comm, void *out) { return get_u32(comm, out, false); }

int32_t f_HcclGetRankId(void *comm, void *out) { return get_u32(comm, out, true); }

int32_t f_HcclGetCommName(void *handle, void *out) {
	int32_t code;
	fk_acquire();
	fk_comm *c = comm_of(handle, &code);
	if (c && !out) code = fk_error(HC_PTR, "EI0003: commName is null");
	if (!code) memcpy(out, c->set.name, NAME_BYTES);
	fk_release();
	return code;
}

int32_t f_HcclGetCommAsyncError(void *handle, void *out) {
	int32_t code;
	fk_acquire();
	fk_comm *c = comm_of(handle, &code);
	if (c && fk_sw.soc == SOC_950) {
		code = HC_NOT_SUPPORT;
	} else if (c && !out) {
		code = fk_error(HC_PTR, "EI0003: asyncError is null");
	} else if (c) {
		*(int32_t *)out = HC_OK; // a dead peer does not show here
	}
	fk_release();
	return code;
}

static int32_t suspend(void *handle, bool on) {
	int32_t code;
	fk_acquire();
	fk_comm *c = comm_of(handle, &code);
	if (c) c->suspended = on;
	fk_release();
	return code;
}

int32_t f_HcclCommSuspend(void *comm) { return suspend(comm, true); }

int32_t f_HcclCommResume(void *comm) { return suspend(comm, false); }
