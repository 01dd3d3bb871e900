// The hub of a communicator: it collects the requests of all ranks and answers them.
#include <errno.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hccl.h"

const char *const hub_names[] = {"hello", "HcclCommDestroy", "HcclAllReduce", "HcclReduce", "HcclReduceScatter", "HcclReduceScatterV", "HcclAllGather",
	"HcclAllGatherV", "HcclBroadcast",
	"HcclScatter", "HcclAlltoAll", "HcclAlltoAllV", "HcclBarrier", "HcclSend", "HcclRecv"};

typedef struct rank {
	int fd; // -1: not there
	bool gone;
	pthread_mutex_t writing;
	uint64_t hello; // id of its request
} rank;

// round is a collective of which some ranks are there.
typedef struct round {
	uint64_t order;
	enum hub_kind kind; // HK_BYE apart from the collectives
	message **m;
	int have;
	struct round *next;
} round;

typedef struct hub {
	char name[NAME_BYTES];
	int listener, n, have, connections;
	bool retired, refused;
	char why[200];
	rank *ranks;
	frame *hellos;
	round *rounds;
	message *transfers; // sends and receives without their other half, oldest first
	pthread_mutex_t lock;
	struct hub *next;
} hub;

static hub *hubs;
static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;

// answer_rank writes an answer. The hub's lock may be held: readers at the other end never wait for the hub.
static void answer_rank(hub *h, int r, const frame *request, int32_t status, const void *data, uint64_t bytes) {
	frame f = *request;
	f.nmeta = 0;
	f.bytes = bytes;
	f.status = status;
	pthread_mutex_lock(&h->ranks[r].writing);
	if (h->ranks[r].fd >= 0 && !h->ranks[r].gone) wire_send(h->ranks[r].fd, &f, NULL, data);
	pthread_mutex_unlock(&h->ranks[r].writing);
}

static void refuse_all(hub *h, const char *why) {
	h->refused = true;
	snprintf(h->why, sizeof h->why, "%s", why);
	for (int r = 0; r < h->n; r++) {
		if (h->ranks[r].fd >= 0) answer_rank(h, r, &h->hellos[r], HC_PARA, h->why, strlen(h->why));
	}
}

// hello takes a rank in. False, with a text: it is refused.
static bool hello(hub *h, int fd, const message *m, char *why, size_t n) {
	const frame *f = &m->f;
	if (!h->n) {
		h->n = (int)f->ranks;
		h->ranks = fk_zalloc((size_t)h->n * sizeof *h->ranks);
		h->hellos = fk_zalloc((size_t)h->n * sizeof *h->hellos);
		for (int r = 0; r < h->n; r++) {
			h->ranks[r].fd = -1;
			pthread_mutex_init(&h->ranks[r].writing, NULL);
		}
	}
	if (h->refused) {
		snprintf(why, n, "%s", h->why);
	} else if ((int)f->ranks != h->n) {
		snprintf(why, n, "rank %u says %u ranks, others %d", f->rank, f->ranks, h->n);
	} else if (f->rank >= f->ranks) {
		snprintf(why, n, "rank %u of %u", f->rank, f->ranks);
	} else if (h->ranks[f->rank].fd >= 0) {
		snprintf(why, n, "rank %u is there twice", f->rank);
	} else {
		for (int r = 0; r < h->n; r++) {
			if (h->ranks[r].fd < 0 || h->hellos[r].device != f->device) continue;
			snprintf(why, n, "ranks %d and %u use the same device %u", r, f->rank, f->device);
			if (!fk_sw.two_ranks_hang) refuse_all(h, why);
			return false;
		}
		h->ranks[f->rank].fd = fd;
		h->hellos[f->rank] = *f;
		if (++h->have == h->n) {
			for (int r = 0; r < h->n; r++) answer_rank(h, r, &h->hellos[r], HC_OK, NULL, 0);
		}
		return true;
	}
	return false;
}

static void round_end(hub *h, round *r) {
	for (round **p = &h->rounds; *p; p = &(*p)->next) {
		if (*p == r) {
			*p = r->next;
			break;
		}
	}
	for (int i = 0; i < h->n; i++) message_free(r->m[i]);
	free(r->m);
	free(r);
}

// collect adds a request to its round, and answers when all are there.
static void collect(hub *h, message *m) {
	round *r = h->rounds;
	bool bye = m->f.kind == HK_BYE;
	while (r && (r->order != m->f.order || (r->kind == HK_BYE) != bye)) r = r->next;
	if (!r) {
		r = fk_zalloc(sizeof *r);
		r->order = m->f.order;
		r->kind = m->f.kind;
		r->m = fk_zalloc((size_t)h->n * sizeof *r->m);
		r->next = h->rounds;
		h->rounds = r;
	}
	if (r->m[m->f.rank]) {
		message_free(m);
		return;
	}
	r->m[m->f.rank] = m;
	if (++r->have < h->n) return;
	answer *out = fk_zalloc((size_t)h->n * sizeof *out);
	char err[300] = "";
	bool ok = bye || hub_compute(r->m, h->n, out, err, sizeof err);
	for (int i = h->n - 1; i >= 0; i--) { // rank 0 last: its process has the hub, and may end as soon as it has its answer
		answer_rank(h, i, &r->m[i]->f, ok ? HC_OK : HC_PARA, ok ? out[i].data : err, ok ? out[i].bytes : strlen(err));
		free(out[i].data);
	}
	free(out);
	round_end(h, r);
}

// transfer pairs a send with a receive.
static void transfer(hub *h, message *m) {
	uint32_t other = m->f.kind == HK_SEND ? HK_RECV : HK_SEND;
	message **p = &h->transfers;
	for (; *p; p = &(*p)->next) {
		message *o = *p;
		if (o->f.kind == other && o->f.rank == m->f.root && o->f.root == m->f.rank && o->f.order == m->f.order) break;
	}
	message *o = *p;
	if (!o) {
		m->next = NULL;
		*p = m;
		return;
	}
	*p = o->next;
	message *s = m->f.kind == HK_SEND ? m : o, *r = s == m ? o : m;
	if (s->f.count != r->f.count || s->f.dtype != r->f.dtype) {
		char err[200];
		snprintf(err, sizeof err, "rank %u sends %llu of type %d, rank %u receives %llu of type %d", s->f.rank, (unsigned long long)s->f.count, s->f.dtype,
			r->f.rank, (unsigned long long)r->f.count,
			r->f.dtype);
		answer_rank(h, (int)s->f.rank, &s->f, HC_PARA, err, strlen(err));
		answer_rank(h, (int)r->f.rank, &r->f, HC_PARA, err, strlen(err));
	} else {
		answer_rank(h, (int)s->f.rank, &s->f, HC_OK, NULL, 0);
		answer_rank(h, (int)r->f.rank, &r->f, HC_OK, s->data, s->f.bytes);
	}
	message_free(s);
	message_free(r);
}

static void hub_free(hub *h) {
	while (h->rounds) round_end(h, h->rounds);
	while (h->transfers) {
		message *m = h->transfers;
		h->transfers = m->next;
		message_free(m);
	}
	free(h->ranks);
	free(h->hellos);
	free(h);
}

// leave ends a connection. When the last is gone, the hub ends.
static void leave(hub *h, int fd, int who) {
	pthread_mutex_lock(&h->lock);
	if (who >= 0) {
		pthread_mutex_lock(&h->ranks[who].writing);
		h->ranks[who].gone = true;
		pthread_mutex_unlock(&h->ranks[who].writing);
	}
	close(fd);
	bool last = --h->connections == 0;
	pthread_mutex_unlock(&h->lock);
	if (last) hub_retire(h->name);
}

typedef struct connection {
	hub *h;
	int fd;
} connection;

static void *serve(void *arg) {
	connection c = *(connection *)arg;
	free(arg);
	int who = -1;
	for (message *m; (m = wire_receive(c.fd));) {
		pthread_mutex_lock(&c.h->lock);
		if (m->f.kind == HK_HELLO) {
			char why[200];
			if (hello(c.h, c.fd, m, why, sizeof why)) {
				who = (int)m->f.rank;
			} else if (!fk_sw.two_ranks_hang) {
				frame f = m->f;
				f.status = HC_PARA;
				f.nmeta = 0;
				f.bytes = strlen(why);
				wire_send(c.fd, &f, NULL, why);
			}
			message_free(m);
		} else if (m->f.kind == HK_SEND || m->f.kind == HK_RECV) {
			transfer(c.h, m);
		} else {
			collect(c.h, m);
		}
		pthread_mutex_unlock(&c.h->lock);
	}
	leave(c.h, c.fd, who);
	return NULL;
}

static void *accept_all(void *arg) {
	hub *h = arg;
	for (;;) {
		int fd = accept(h->listener, NULL, NULL);
		if (fd < 0 && errno == EINTR) continue;
		if (fd < 0) break;
		pthread_mutex_lock(&h->lock);
		h->connections++;
		pthread_mutex_unlock(&h->lock);
		connection *c = fk_zalloc(sizeof *c);
		*c = (connection){h, fd};
		pthread_t t;
		if (pthread_create(&t, NULL, serve, c)) abort();
		pthread_detach(t);
	}
	close(h->listener);
	pthread_mutex_lock(&h->lock);
	bool empty = !h->connections;
	pthread_mutex_unlock(&h->lock);
	pthread_mutex_lock(&hubs_lock); // whoever retired the hub has let go of its name
	pthread_mutex_unlock(&hubs_lock);
	if (empty) hub_free(h); // otherwise a connection came at the last moment; the process keeps the little that it holds
	return NULL;
}

static socklen_t address(struct sockaddr_un *a, const char *name) {
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s", name); // abstract: it leaves no file
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

bool hub_start(const char *name) {
	struct sockaddr_un a;
	socklen_t n = address(&a, name);
	hub *h = fk_zalloc(sizeof *h);
	snprintf(h->name, sizeof h->name, "%s", name);
	pthread_mutex_init(&h->lock, NULL);
	h->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t t;
	if (h->listener < 0 || bind(h->listener, (struct sockaddr *)&a, n) || listen(h->listener, 256)) {
		if (h->listener >= 0) close(h->listener);
		free(h);
		return false;
	}
	pthread_mutex_lock(&hubs_lock);
	h->next = hubs;
	hubs = h;
	pthread_mutex_unlock(&hubs_lock);
	if (pthread_create(&t, NULL, accept_all, h)) abort();
	pthread_detach(t);
	return true;
}

void hub_retire(const char *name) {
	pthread_mutex_lock(&hubs_lock);
	for (hub **p = &hubs; *p; p = &(*p)->next) {
		hub *h = *p;
		if (strcmp(h->name, name) == 0) {
			*p = h->next;
			shutdown(h->listener, SHUT_RDWR); // accept returns
			break;
		}
	}
	pthread_mutex_unlock(&hubs_lock);
}

int hub_connect(const char *name, int64_t until) {
	struct sockaddr_un a;
	socklen_t n = address(&a, name);
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) return -1;
		if (connect(fd, (struct sockaddr *)&a, n) == 0) return fd;
		close(fd);
		if (until >= 0 && fk_now() >= until) return -1;
		fk_sleep(2000);
	}
}
