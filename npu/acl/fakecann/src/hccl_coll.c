// Collectives and transfers: what is checked when they are called, and their tasks.
#include "hccl.h"

typedef struct piece { // of device memory
	char *at;
	int64_t bytes;
} piece;

// part is one request to the hub. A task has one; a group of transfers has several, which wait for each other only.
typedef struct part {
	frame f;
	uint64_t *meta;
	piece *send, *recv; // until one of no bytes
	int sends, recvs;
	uint64_t id;
} part;

typedef struct op {
	fk_task t;
	fk_comm *c;
	part *parts;
	int n;
	bool first; // links are made
	bool seen;  // it ran before, in a graph
	struct op *next; // in a group
	fk_stream *s;
} op;

// ---- groups ----

static _Thread_local int depth;
static _Thread_local op *group; // transfers of the group, newest first

static void part_free(part *p) {
	free(p->meta);
	free(p->send);
	free(p->recv);
}

static void op_free(fk_task *t) {
	op *o = (op *)t;
	for (int i = 0; i < o->n; i++) part_free(&o->parts[i]);
	free(o->parts);
	if (o->c) o->c->finished++;
	free(o);
}

// request collects a part's bytes and sends it. Lock not held.
static bool request(op *o, part *p) {
	uint64_t bytes = 0;
	for (int i = 0; i < p->sends; i++) bytes += (uint64_t)p->send[i].bytes;
	char *data = fk_zalloc((size_t)bytes + 1), *to = data;
	bool ok = true;
	for (int i = 0; ok && i < p->sends; i++) {
		if (!p->send[i].bytes) continue;
		fk_acquire();
		const char *from = fk_reach(o->c->device, p->send[i].at, p->send[i].bytes, o->t.why, sizeof o->t.why);
		fk_release();
		ok = from != NULL;
		if (ok) memcpy(to, from, (size_t)p->send[i].bytes);
		to += p->send[i].bytes;
	}
	p->f.bytes = bytes;
	if (ok) p->id = comm_request(o->c, &p->f, p->meta, data);
	free(data);
	return ok;
}

// store writes an answer to device memory. Lock held.
static int32_t store(op *o, part *p, const message *m) {
	const char *from = m->data;
	uint64_t left = m->f.bytes;
	for (int i = 0; i < p->recvs && left; i++) {
		int64_t n = p->recv[i].bytes;
		if (!n) continue;
		char *to = fk_reach(o->c->device, p->recv[i].at, n, o->t.why, sizeof o->t.why);
		if (!to) return 507015;
		if ((uint64_t)n > left) n = (int64_t)left;
		memcpy(to, from, (size_t)n);
		from += n;
		left -= (uint64_t)n;
	}
	return 0;
}

// await waits for one part's answer. Lock held.
static int32_t await(op *o, part *p, int64_t until) {
	const char *what = hub_names[p->f.kind];
	message *m;
	while (!(m = comm_answer(o->c, p->id))) {
		if (fk_dropped(o->t.stream)) {
			snprintf(o->t.why, sizeof o->t.why, "%s was aborted", what);
			return 107023;
		}
		if (!fk_wait(until) && !(m = comm_answer(o->c, p->id))) {
			snprintf(o->t.why, sizeof o->t.why, "%s: %s of communicator %.100s (operation %llu) waited %g s for the other ranks", o->first ?
				"EI0006: link set-up" : "EI0002: notify wait timeout", what,
				o->c->set.name, (unsigned long long)p->f.order, o->first ? o->c->set.connect_s + 20 : o->c->set.exec_s);
			return 107020;
		}
		if (m) break;
	}
	int32_t code = 0;
	if (m->f.status) {
		snprintf(o->t.why, sizeof o->t.why, "EI0005: the ranks disagree: %.300s", m->data);
		code = 107000;
	} else {
		code = store(o, p, m);
	}
	message_free(m);
	return code;
}

static int32_t run(fk_task *t) {
	op *o = (op *)t;
	if (t->replayed && o->seen) {
		fk_acquire();
		for (int i = 0; i < o->n; i++) {
			if (o->parts[i].f.kind < HK_SEND) o->parts[i].f.order = o->c->orders++;
		}
		fk_release();
	}
	o->seen = true;
	for (int i = 0; i < o->n; i++) {
		if (!request(o, &o->parts[i])) return 507015;
	}
	int64_t until = comm_until(o->first ? o->c->set.connect_s + 20 : o->c->set.exec_s);
	int32_t code = 0;
	fk_acquire();
	for (int i = 0; i < o->n && !code; i++) code = await(o, &o->parts[i], until);
	fk_release();
	return code;
}

// ordered notes what an operation touches. Lock held.
static void ordered(const op *o, fk_stream *s) {
	fk_order_begin(s);
	for (int i = 0; i < o->n; i++) {
		const part *p = &o->parts[i];
		for (int k = 0; k < p->sends; k++) fk_order_access(s, o->t.name, p->send[k].at, p->send[k].bytes, false);
		for (int k = 0; k < p->recvs; k++) fk_order_access(s, o->t.name, p->recv[k].at, p->recv[k].bytes, true);
	}
}

// issue enqueues an operation, or leaves it to the end of the group. Lock held.
static void issue(fk_comm *c, fk_stream *s, part *p) {
	op *o = fk_zalloc(sizeof *o);
	o->c = c;
	o->parts = fk_zalloc(sizeof *p);
	o->parts[0] = *p;
	o->n = 1;
	o->t = (fk_task){.name = hub_names[p->f.kind], .run = run, .free = op_free};
	c->used++;
	if (p->f.kind == HK_SEND || p->f.kind == HK_RECV) {
		if (depth) {
			o->s = s;
			o->next = group;
			group = o;
			return;
		}
	} else {
		o->parts[0].f.order = c->orders++;
		o->first = o->parts[0].f.order == 0;
	}
	ordered(o, s);
	fk_enqueue(s, &o->t);
}

int32_t f_HcclGroupStart(void) {
	depth++;
	return HC_OK;
}

int32_t f_HcclGroupEnd(void) {
	if (!depth) return fk_violation(HC_PARA, "EI0003: no group was started");
	if (--depth) return HC_OK;
	fk_acquire();
	op *list = NULL;
	while (group) { // oldest first
		op *o = group;
		group = o->next;
		o->next = list;
		list = o;
	}
	while (list) { // the transfers of one communicator and stream become one task
		op *o = list;
		list = o->next;
		for (op **p = &list; *p;) {
			op *other = *p;
			if (other->c != o->c || other->s != o->s) {
				p = &other->next;
				continue;
			}
			*p = other->next;
			o->parts = realloc(o->parts, (size_t)(o->n + 1) * sizeof *o->parts);
			if (!o->parts) abort();
			o->parts[o->n++] = other->parts[0];
			o->c->used--;
			free(other->parts);
			free(other);
		}
		ordered(o, o->s);
		fk_enqueue(o->s, &o->t);
	}
	fk_release();
	return HC_OK;
}

// ---- arguments ----

static int32_t type_checked(int dtype) {
	if (hccl_size(dtype)) return HC_OK;
	return fk_error(HC_PARA, "EI0003: dataType %d does not exist", dtype);
}

static int32_t reduction_checked(int dtype, int how) {
	if (!hccl_size(dtype) || how < HR_SUM || how > HR_MIN) return fk_error(HC_PARA, "EI0003: dataType is %d, op %d", dtype, how);
	bool known = dtype == HT_I8 || dtype == HT_I32 || dtype == HT_I64 || dtype == HT_F16 || dtype == HT_F32;
	if (fk_sw.soc != SOC_910) known |= dtype == HT_I16 || dtype == HT_BF16;
	if (fk_sw.soc == SOC_950) known |= dtype == HT_U64 || dtype == HT_F64;
	if (!known || (how == HR_PROD && (dtype == HT_I16 || dtype == HT_BF16))) return fk_error(HC_NOT_SUPPORT,
		"EI0003: a reduction of dataType %d with op %d is not supported", dtype, how);
	return HC_OK;
}

static int32_t buffer_checked(const void *p, uint64_t count, int dtype, const char *name) {
	if (!p) return fk_error(HC_PTR, "EI0003: %s is null", name);
	if (count > (uint64_t)1 << 40) return fk_error(HC_PARA, "EI0003: count %llu", (unsigned long long)count);
	if ((uintptr_t)p % (uint64_t)hccl_size(dtype)) return fk_error(HC_PARA, "EI0003: %s is not aligned to its elements", name);
	return HC_OK;
}

static piece *pieces(int n) { return fk_zalloc((size_t)(n ? n : 1) * sizeof(piece)); }

static void one_piece(piece **list, int *n, void *at, uint64_t elements, int dtype) {
	*list = pieces(1);
	(*list)[0] = (piece){at, (int64_t)elements * hccl_size(dtype)};
	*n = 1;
}

// displaced makes a piece for each rank.
static void displaced(piece **list, int *n, int ranks, void *base, const uint64_t *counts, const uint64_t *displs, int dtype) {
	int64_t each = hccl_size(dtype);
	*list = pieces(ranks);
	for (int i = 0; i < ranks; i++) (*list)[i] = (piece){(char *)base + (int64_t)displs[i] * each, (int64_t)counts[i] * each};
	*n = ranks;
}

static uint64_t *numbers(const uint64_t *a, const uint64_t *b, int n) {
	uint64_t *m = fk_zalloc((size_t)n * 16);
	memcpy(m, a, (size_t)n * 8);
	if (b) memcpy(m + n, b, (size_t)n * 8);
	return m;
}

// begin looks the communicator and stream up. Lock is held when it succeeds.
static fk_comm *begin(void *comm, void *stream, fk_stream **s, int32_t *code) {
	fk_acquire();
	fk_comm *c = comm_of(comm, code);
	*s = c ? comm_stream(c, stream, code) : NULL;
	if (*s) return c;
	fk_release();
	return NULL;
}

static int32_t finish(fk_comm *c, fk_stream *s, part *p) {
	issue(c, s, p);
	fk_release();
	return HC_OK;
}

// ---- the functions ----

int32_t f_HcclAllReduce(void *send, void *recv, uint64_t count, int32_t dtype, int32_t how, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = reduction_checked(dtype, how);
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_ALL_REDUCE, .count = count, .dtype = dtype, .op = how}};
	one_piece(&p.send, &p.sends, send, count, dtype);
	one_piece(&p.recv, &p.recvs, recv, count, dtype);
	return finish(c, s, &p);
}

static int32_t root_checked(fk_comm *c, uint32_t root) {
	return root < (uint32_t)c->ranks ? HC_OK : fk_error(HC_PARA, "EI0003: root or rank %u of %d", root, c->ranks);
}

int32_t f_HcclReduce(void *send, void *recv, uint64_t count, int32_t dtype, int32_t how, uint32_t root, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = reduction_checked(dtype, how);
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if ((code = root_checked(c, root))) {
		fk_release();
		return code;
	}
	part p = {.f = {.kind = HK_REDUCE, .count = count, .dtype = dtype, .op = how, .root = root}};
	one_piece(&p.send, &p.sends, send, count, dtype);
	one_piece(&p.recv, &p.recvs, recv, count, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclReduceScatter(void *send, void *recv, uint64_t count, int32_t dtype, int32_t how, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = reduction_checked(dtype, how);
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_REDUCE_SCATTER, .count = count, .dtype = dtype, .op = how}};
	one_piece(&p.send, &p.sends, send, count * (uint64_t)c->ranks, dtype);
	one_piece(&p.recv, &p.recvs, recv, count, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclReduceScatterV(void *send, void *counts, void *displs, void *recv, uint64_t count, int32_t dtype, int32_t how, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = reduction_checked(dtype, how);
	if (!counts || !displs) return fk_error(HC_PTR, "EI0003: sendCounts or sendDispls is null");
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if (((uint64_t *)counts)[c->rank] != count) {
		code = fk_error(HC_PARA, "EI0003: recvCount is %llu, sendCounts has %llu", (unsigned long long)count, (unsigned long long)((uint64_t *)counts)[c->rank]);
		fk_release();
		return code;
	}
	part p = {.f = {.kind = HK_REDUCE_SCATTER_V, .count = count, .dtype = dtype, .op = how, .nmeta = (uint64_t)c->ranks}, .meta = numbers(counts, NULL,
		c->ranks)};
	displaced(&p.send, &p.sends, c->ranks, send, counts, displs, dtype);
	one_piece(&p.recv, &p.recvs, recv, count, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclAllGather(void *send, void *recv, uint64_t count, int32_t dtype, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_ALL_GATHER, .count = count, .dtype = dtype}};
	one_piece(&p.send, &p.sends, send, count, dtype);
	one_piece(&p.recv, &p.recvs, recv, count * (uint64_t)c->ranks, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclAllGatherV(void *send, uint64_t count, void *recv, void *counts, void *displs, int32_t dtype, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!counts || !displs) return fk_error(HC_PTR, "EI0003: recvCounts or recvDispls is null");
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if (((uint64_t *)counts)[c->rank] != count) {
		code = fk_error(HC_PARA, "EI0003: sendCount is %llu, recvCounts has %llu", (unsigned long long)count, (unsigned long long)((uint64_t *)counts)[c->rank]);
		fk_release();
		return code;
	}
	part p = {.f = {.kind = HK_ALL_GATHER_V, .count = count, .dtype = dtype, .nmeta = (uint64_t)c->ranks}, .meta = numbers(counts, NULL, c->ranks)};
	one_piece(&p.send, &p.sends, send, count, dtype);
	displaced(&p.recv, &p.recvs, c->ranks, recv, counts, displs, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclBroadcast(void *buf, uint64_t count, int32_t dtype, uint32_t root, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!code) code = buffer_checked(buf, count, dtype, "buf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if ((code = root_checked(c, root))) {
		fk_release();
		return code;
	}
	part p = {.f = {.kind = HK_BROADCAST, .count = count, .dtype = dtype, .root = root}};
	if (c->rank == (int)root) {
		one_piece(&p.send, &p.sends, buf, count, dtype);
	} else {
		one_piece(&p.recv, &p.recvs, buf, count, dtype);
	}
	return finish(c, s, &p);
}

int32_t f_HcclScatter(void *send, void *recv, uint64_t count, int32_t dtype, uint32_t root, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if (!(code = root_checked(c, root)) && c->rank == (int)root) code = buffer_checked(send, count, dtype, "sendBuf");
	if (code) {
		fk_release();
		return code;
	}
	part p = {.f = {.kind = HK_SCATTER, .count = count, .dtype = dtype, .root = root}};
	if (c->rank == (int)root) one_piece(&p.send, &p.sends, send, count * (uint64_t)c->ranks, dtype);
	one_piece(&p.recv, &p.recvs, recv, count, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclAlltoAll(void *send, uint64_t count, int32_t dtype, void *recv, uint64_t rcount, int32_t rtype, void *comm, void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!code) code = buffer_checked(send, count, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, count, dtype, "recvBuf");
	if (!code && (count != rcount || dtype != rtype)) code = fk_error(HC_PARA,
		"EI0003: what is sent and what is received differ: %llu of type %d, %llu of type %d", (unsigned long long)count, dtype,
		(unsigned long long)rcount, rtype);
	if (!code && send == recv) code = fk_error(HC_PARA, "EI0003: sendBuf and recvBuf are the same");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_ALL_TO_ALL, .count = count, .dtype = dtype}};
	one_piece(&p.send, &p.sends, send, count * (uint64_t)c->ranks, dtype);
	one_piece(&p.recv, &p.recvs, recv, count * (uint64_t)c->ranks, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclAlltoAllV(void *send, void *counts, void *displs, int32_t dtype, void *recv, void *rcounts, void *rdispls, int32_t rtype, void *comm,
	void *stream) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!counts || !displs || !rcounts || !rdispls) return fk_error(HC_PTR, "EI0003: counts or displacements are null");
	if (!code) code = buffer_checked(send, 0, dtype, "sendBuf");
	if (!code) code = buffer_checked(recv, 0, dtype, "recvBuf");
	if (!code && (dtype != rtype || send == recv)) code = fk_error(HC_PARA, "EI0003: sendType %d, recvType %d, or sendBuf and recvBuf are the same", dtype,
		rtype);
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_ALL_TO_ALL_V, .dtype = dtype, .nmeta = 2 * (uint64_t)c->ranks}, .meta = numbers(counts, rcounts, c->ranks)};
	displaced(&p.send, &p.sends, c->ranks, send, counts, displs, dtype);
	displaced(&p.recv, &p.recvs, c->ranks, recv, rcounts, rdispls, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclBarrier(void *comm, void *stream) {
	fk_stream *s;
	int32_t code;
	fk_comm *c = begin(comm, stream, &s, &code);
	if (!c) return code;
	part p = {.f = {.kind = HK_BARRIER}};
	return finish(c, s, &p);
}

static int32_t transfer(void *buf, uint64_t count, int32_t dtype, uint32_t peer, void *comm, void *stream, bool sends) {
	fk_stream *s;
	int32_t code = type_checked(dtype);
	if (!code) code = buffer_checked(buf, count, dtype, sends ? "sendBuf" : "recvBuf");
	fk_comm *c = code ? NULL : begin(comm, stream, &s, &code);
	if (!c) return code;
	if (!(code = root_checked(c, peer)) && peer == (uint32_t)c->rank) code = fk_error(HC_PARA, "EI0003: a rank cannot send to itself");
	if (code) {
		fk_release();
		return code;
	}
	part p = {.f = {.kind = sends ? HK_SEND : HK_RECV, .count = count, .dtype = dtype, .root = peer}};
	one_piece(sends ? &p.send : &p.recv, sends ? &p.sends : &p.recvs, buf, count, dtype);
	return finish(c, s, &p);
}

int32_t f_HcclSend(void *buf, uint64_t count, int32_t dtype, uint32_t peer, void *comm, void *stream) { return transfer(buf, count, dtype, peer, comm,
	stream, true); }

int32_t f_HcclRecv(void *buf, uint64_t count, int32_t dtype, uint32_t peer, void *comm, void *stream) { return transfer(buf, count, dtype, peer, comm,
	stream, false); }

int32_t f_HcclBatchSendRecv(void *items, uint32_t n, void *comm, void *stream) {
	struct item {
		int32_t type; // 0 send, 1 receive
		void *buf;
		uint64_t count;
		int32_t dtype;
		uint32_t peer;
	} *it = items;
	_Static_assert(sizeof(struct item) == 32, "the layout of HcclSendRecvItem");
	if (!items || !n) return fk_error(HC_PTR, "EI0003: sendRecvInfo is null or empty");
	int32_t code = f_HcclGroupStart();
	for (uint32_t i = 0; i < n && !code; i++) {
		if (it[i].type != 0 && it[i].type != 1) code = fk_error(HC_PARA, "EI0003: item %u has type %d", i, it[i].type);
		if (!code) code = transfer(it[i].buf, it[i].count, it[i].dtype, it[i].peer, comm, stream, it[i].type == 0);
	}
	int32_t end = f_HcclGroupEnd();
	return code ? code : end;
}
