// Communicators from a rank table, and those made of some ranks of another.
#include <ctype.h>

#include "hccl.h"

// value_after returns the text of "key": "value" behind a place, and moves the place there; NULL: no such key.
static char *value_after(const char **at, const char *key, char *out, size_t n) {
	char quoted[64];
	snprintf(quoted, sizeof quoted, "\"%s\"", key);
	const char *p = strstr(*at, quoted);
	if (!p) return NULL;
	p += strlen(quoted);
	while (isspace((unsigned char)*p) || *p == ':' || *p == '"') p++;
	size_t i = 0;
	while (*p && *p != '"' && *p != ',' && *p != '}' && *p != ']' && i + 1 < n) out[i++] = *p++;
	out[i] = 0;
	*at = p;
	return out;
}

typedef struct rank_table {
	char *text;
	int ranks, device; // of the rank in question; -1: it is not there
} rank_table;

static int32_t read_table(const char *path, uint32_t rank, rank_table *t) {
	FILE *f = path ? fopen(path, "r") : NULL;
	if (!f) return fk_error(HC_OPEN_FILE, "EI0004: the rank table %s cannot be opened", path ? path : "(null)");
	t->text = fk_zalloc(1 << 20);
	size_t n = fread(t->text, 1, (1 << 20) - 1, f);
	fclose(f);
	t->text[n] = 0;
	char status[32] = "", version[16] = "", id[16], device[16];
	const char *at = t->text;
	value_after(&at, "status", status, sizeof status);
	at = t->text;
	value_after(&at, "version", version, sizeof version);
	bool known = fk_sw.soc == SOC_950 ? strcmp(version, "2.0") == 0 : strcmp(version, "1.0") == 0 || (fk_sw.soc == SOC_A3 && strcmp(version, "1.2") == 0);
	if (strcmp(status, "completed") != 0) return fk_error(HC_PARA, "EI0004: the rank table's status is \"%s\", want completed", status);
	if (!known) return fk_error(HC_PARA, "EI0014: version \"%s\" of the rank table does not fit %s", version, fk_sw.soc_name);
	t->device = -1;
	at = t->text;
	while (value_after(&at, "device_id", device, sizeof device) && value_after(&at, "rank_id", id, sizeof id)) {
		t->ranks++;
		if (atoi(id) == (int)rank) t->device = atoi(device);
	}
	return t->device < 0 ? fk_error(HC_PARA, "EI0014: rank %u is not in the rank table", rank) : HC_OK;
}

static int32_t from_table(void *path, uint32_t rank, void *config, void *out) {
	int32_t code;
	rank_table t = {0};
	fk_acquire();
	fk_context *c = fk_alive(&code);
	int device = c ? c->device : -1;
	fk_release();
	if (!c) return HC_RUNTIME;
	if (!out) return fk_error(HC_PTR, "EI0003: comm is null");
	code = read_table(path, rank, &t);
	if (!code && t.device != device) code = fk_error(HC_PARA, "EI0014: the rank table gives rank %u device %d, the thread has device %d", rank, t.device,
		device);
	if (!code) {
		uint64_t hash = 14695981039346656037u;
		for (const char *p = t.text; *p; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
		char name[64];
		unsigned char root[ROOT_BYTES];
		snprintf(name, sizeof name, "fakecann-table-%016llx", (unsigned long long)hash);
		comm_root(root, name);
		if (rank == 0 && !hub_start(name)) code = fk_error(HC_TCP_CONNECT, "EI0019: the socket of the rank table is in use");
		if (!code) code = comm_init(t.ranks, root, (int)rank, device, config, out);
	}
	free(t.text);
	return code;
}

int32_t f_HcclCommInitClusterInfo(void *path, uint32_t rank, void *out) { return from_table(path, rank, NULL, out); }

int32_t f_HcclCommInitClusterInfoConfig(void *path, uint32_t rank, void *config, void *out) {
	return config ? from_table(path, rank, config, out) : fk_error(HC_PTR, "EI0003: config is null");
}

// pass sends bytes to a rank of a communicator, or receives them. The tag keeps them apart from the program's transfers.
static int32_t pass(fk_comm *c, bool sends, uint32_t peer, uint64_t tag, unsigned char *bytes) {
	frame f = {.kind = sends ? HK_SEND : HK_RECV, .order = tag, .count = ROOT_BYTES, .dtype = HT_U8, .root = peer, .bytes = sends ? ROOT_BYTES : 0};
	uint64_t id = comm_request(c, &f, NULL, bytes);
	int64_t until = comm_until(c->set.connect_s + 20);
	fk_acquire();
	message *m;
	while (!(m = comm_answer(c, id)) && fk_wait(until)) {}
	int32_t code = !m ? fk_error(HC_TIMEOUT, "EI0015: rank %u of the group did not come", peer) : m->f.status ? fk_error(m->f.status, "EI0014: %s",
		m->data) : HC_OK;
	if (!code && !sends) memcpy(bytes, m->data, ROOT_BYTES);
	fk_release();
	message_free(m);
	return code;
}

int32_t f_HcclCreateSubCommConfig(void *parent, uint32_t n, void *ids, uint64_t group, uint32_t rank, void *config, void *out) {
	int32_t code;
	if (!parent || !out || !config) return fk_error(HC_PTR, "EI0003: comm, subComm or config is null");
	*(void **)out = NULL;
	if (!ids) return HC_OK; // this rank is in none of the groups
	fk_acquire();
	fk_comm *c = comm_of(*(void **)parent, &code);
	uint32_t *list = ids;
	bool ok = c && n >= 1 && rank < n && list[rank] == (uint32_t)c->rank;
	if (c && !ok) code = fk_error(HC_PARA, "EI0003: rank %u of a group of %u is not rank %d of the communicator", rank, n, c->rank);
	fk_release();
	if (code) return code;
	unsigned char root[ROOT_BYTES];
	uint64_t tag = group | (uint64_t)1 << 63;
	if (rank == 0) {
		code = f_HcclGetRootInfo(root);
		for (uint32_t i = 1; i < n && !code; i++) code = pass(c, true, list[i], tag, root);
	} else {
		code = pass(c, false, list[0], tag, root);
	}
	return code ? code : comm_init((int)n, root, (int)rank, c->device, config, out);
}
