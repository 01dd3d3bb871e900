// Collectives: ranks are threads here, one device each.
#include <sys/wait.h>

#include "test.h"

enum { RANKS = 3, HF32 = 4, HBF16 = 11, HU8 = 7, HF64 = 10, HI64 = 5, SUM = 0, MAX = 2 };

typedef struct rank {
	int r, n;
	unsigned char *root, *config;
	void *comm, *stream;
	void (*body)(struct rank *);
} rank;

static pthread_barrier_t gate;

static void *live(void *arg) {
	rank *k = arg;
	OK(aclrtSetDevice(k->r));
	OK(aclrtSetDeviceSatMode(1));
	OK(aclrtCreateStreamWithConfig(&k->stream, 0, 3));
	if (k->r == 0) OK(HcclGetRootInfo(k->root));
	pthread_barrier_wait(&gate);
	if (k->config) {
		OK(HcclCommInitRootInfoConfig((uint32_t)k->n, k->root, (uint32_t)k->r, k->config, &k->comm));
	} else {
		OK(HcclCommInitRootInfo((uint32_t)k->n, k->root, (uint32_t)k->r, &k->comm));
	}
	k->body(k);
	if (k->comm) OK(HcclCommDestroy(k->comm));
	OK(aclrtDestroyStream(k->stream));
	OK(aclrtResetDevice(k->r));
	return NULL;
}

static void all(int n, void (*body)(rank *), unsigned char *config) {
	static unsigned char root[4108];
	rank k[8];
	pthread_t t[8];
	OK(aclInit(NULL));
	pthread_barrier_init(&gate, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		k[i] = (rank){.r = i, .n = n, .root = root, .config = config, .body = body};
		CHECK(pthread_create(&t[i], NULL, live, &k[i]) == 0);
	}
	for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
	CHECK(stat("device_blocks") == 0 && stat("streams") == 0 && stat("comms") == 0);
	OK(aclFinalize());
}

static void *filled(int n, float first, float step) {
	float v[64];
	CHECK(n <= 64);
	for (int i = 0; i < n; i++) v[i] = first + step * (float)i;
	return device_f32(v, n);
}

static void sync_of(rank *k) { OK(aclrtSynchronizeStreamWithTimeout(k->stream, 30000)); }

static void all_kinds(rank *k) {
	float got[64], r = (float)k->r;
	void *a = filled(12, r, 1), *b = filled(36, -1, 0);
	OK(HcclAllReduce(a, b, 12, HF32, SUM, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 12);
	for (int i = 0; i < 12; i++) CHECK(got[i] == 3 + 3 * (float)i);
	OK(HcclAllReduce(a, a, 12, HF32, MAX, k->comm, k->stream)); // in place
	OK(HcclReduce(a, b, 12, HF32, SUM, 1, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 12);
	for (int i = 0; i < 12; i++) CHECK(got[i] == (k->r == 1 ? 3 * (2 + (float)i) : 3 + 3 * (float)i));
	OK(HcclReduceScatter(a, b, 4, HF32, SUM, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 4);
	for (int i = 0; i < 4; i++) CHECK(got[i] == 3 * (2 + 4 * r + (float)i));
	OK(HcclAllGather(b, a, 4, HF32, k->comm, k->stream));
	sync_of(k);
	read_f32(got, a, 12);
	for (int i = 0; i < 12; i++) CHECK(got[i] == 3 * (2 + (float)i));
	OK(aclrtMemset(b, 144, 0, 144));
	OK(HcclScatter(k->r == 2 ? a : NULL, b, 4, HF32, 2, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 1);
	CHECK(got[0] == 3 * (2 + 4 * r));
	OK(HcclBroadcast(b, 4, HF32, 1, k->comm, k->stream));
	OK(HcclBarrier(k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 1);
	CHECK(got[0] == 18);
	void *c = filled(12, 100 * r, 1);
	OK(HcclAlltoAll(c, 4, HF32, b, 4, HF32, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 12);
	for (int i = 0; i < 3; i++) CHECK(got[4 * i] == 100 * (float)i + 4 * r);
	OK(aclrtFree(a));
	OK(aclrtFree(b));
	OK(aclrtFree(c));
}

CASE(hccl_all_kinds) { all(RANKS, all_kinds, NULL); }

static void with_counts(rank *k) {
	float got[64], r = (float)k->r;
	uint64_t counts[3] = {1, 2, 3}, displs[3] = {10, 0, 4};
	void *a = filled(12, 10 * r, 1), *b = filled(16, -1, 0);
	OK(HcclAllGatherV(a, counts[k->r], b, counts, displs, HF32, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 16);
	CHECK(got[10] == 0 && got[0] == 10 && got[1] == 11 && got[4] == 20 && got[6] == 22 && got[2] == -1 && got[11] == -1);
	OK(HcclReduceScatterV(a, counts, displs, b, counts[k->r], HF32, SUM, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 3);
	CHECK(got[0] == 30 + 3 * (float)displs[k->r]);
	// Rank i sends i+1 numbers to each.
	uint64_t sent[3] = {(uint64_t)k->r + 1, (uint64_t)k->r + 1, (uint64_t)k->r + 1}, from[3] = {0, 3, 6}, got_n[3] = {1, 2, 3}, to[3] = {0, 4, 8};
	OK(HcclAlltoAllV(a, sent, from, HF32, b, got_n, to, HF32, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 12);
	for (int i = 0; i < 3; i++) CHECK(got[4 * i] == 10 * (float)i + 3 * r);
	WANT(1, HcclAllGatherV(a, 7, b, counts, displs, HF32, k->comm, k->stream));
	OK(aclrtFree(a));
	OK(aclrtFree(b));
}

CASE(hccl_with_counts) { all(RANKS, with_counts, NULL); }

static void point_to_point(rank *k) {
	float got[4];
	int next = (k->r + 1) % k->n, last = (k->r + k->n - 1) % k->n;
	void *a = filled(4, (float)k->r, 0), *b = filled(4, -1, 0);
	if (k->r == 0) OK(HcclSend(a, 4, HF32, 1, k->comm, k->stream));
	if (k->r == 1) OK(HcclRecv(b, 4, HF32, 0, k->comm, k->stream));
	sync_of(k);
	OK(HcclGroupStart());
	OK(HcclSend(a, 4, HF32, (uint32_t)next, k->comm, k->stream));
	OK(HcclRecv(b, 4, HF32, (uint32_t)last, k->comm, k->stream));
	OK(HcclGroupEnd());
	sync_of(k);
	read_f32(got, b, 4);
	CHECK(got[3] == (float)last);
	struct {
		int32_t type;
		void *buf;
		uint64_t count;
		int32_t dtype;
		uint32_t peer;
	} items[2] = {{0, a, 4, HF32, (uint32_t)last}, {1, b, 4, HF32, (uint32_t)next}};
	OK(HcclBatchSendRecv(items, 2, k->comm, k->stream));
	sync_of(k);
	read_f32(got, b, 4);
	CHECK(got[0] == (float)next);
	WANT(1, HcclSend(a, 4, HF32, (uint32_t)k->r, k->comm, k->stream));
	OK(aclrtFree(a));
	OK(aclrtFree(b));
}

CASE(hccl_point_to_point) { all(RANKS, point_to_point, NULL); }

static void refused(rank *k) {
	void *a = filled(8, 1, 0);
	WANT(5, HcclAllReduce(a, a, 8, HU8, SUM, k->comm, k->stream));
	WANT(5, HcclAllReduce(a, a, 4, HF64, SUM, k->comm, k->stream));
	WANT(5, HcclAllReduce(a, a, 4, HBF16, 1, k->comm, k->stream)); // product
	WANT(1, HcclAllReduce(a, a, 4, 99, SUM, k->comm, k->stream));
	WANT(2, HcclAllReduce(NULL, a, 4, HF32, SUM, k->comm, k->stream));
	WANT(2, HcclAllReduce(a, a, 4, HF32, SUM, k->comm, NULL));
	WANT(2, HcclAllReduce(a, a, 4, HF32, SUM, NULL, k->stream));
	WANT(1, HcclAllReduce((char *)a + 1, a, 4, HF32, SUM, k->comm, k->stream));
	WANT(1, HcclAlltoAll(a, 4, HF32, a, 4, HF32, k->comm, k->stream));
	WANT(1, HcclBroadcast(a, 4, HF32, 7, k->comm, k->stream));
	CHECK(strstr(aclGetRecentErrMsg(), "EI0003"));
	OK(HcclBroadcast(a, 8, HU8, 0, k->comm, k->stream)); // all types, where nothing is added
	sync_of(k);
	char name[128];
	uint32_t n;
	int32_t async = 7;
	OK(HcclGetCommName(k->comm, name));
	OK(HcclGetRankSize(k->comm, &n));
	OK(HcclGetCommAsyncError(k->comm, &async));
	CHECK(name[0] && n == RANKS && async == 0 && HcclGetErrorString(9));
	OK(HcclCommSuspend(k->comm));
	WANT(22, HcclBarrier(k->comm, k->stream));
	OK(HcclCommResume(k->comm));
	OK(aclrtFree(a));
}

CASE(hccl_refuses) { all(RANKS, refused, NULL); }

static void disagree(rank *k) {
	void *a = filled(8, 1, 0);
	OK(HcclBarrier(k->comm, k->stream));
	OK(HcclAllReduce(a, a, k->r == 1 ? 7 : 8, HF32, SUM, k->comm, k->stream));
	WANT(107000, aclrtSynchronizeStream(k->stream));
	CHECK(strstr(aclGetRecentErrMsg(), "EI0005"));
	OK(aclrtFree(a));
}

CASE(hccl_disagree) { all(RANKS, disagree, NULL); }

static void one_missing(rank *k) {
	void *a = filled(8, 1, 0);
	OK(HcclBarrier(k->comm, k->stream));
	sync_of(k);
	CHECK(fakeSet("FAKE_CANN_TIME_SCALE", "0.0002"));
	if (k->r != 2) {
		int32_t async = 7;
		OK(HcclAllReduce(a, a, 8, HF32, SUM, k->comm, k->stream));
		WANT(107020, aclrtSynchronizeStream(k->stream)); // 1836 s, scaled
		CHECK(strstr(aclGetRecentErrMsg(), "EI0002"));
		OK(HcclGetCommAsyncError(k->comm, &async));
		CHECK(async == 0); // nothing is known of the peer
	}
	OK(aclrtFree(a));
}

CASE(hccl_missing_peer) { all(RANKS, one_missing, NULL); }

static void aborted(rank *k) {
	void *a = filled(8, 1, 0);
	if (k->r == 0) {
		OK(HcclAllReduce(a, a, 8, HF32, SUM, k->comm, k->stream));
		WANT(507046, aclrtSynchronizeStreamWithTimeout(k->stream, 30));
		OK(aclrtStreamAbort(k->stream));
		WANT(107023, aclrtSynchronizeStream(k->stream));
	}
	OK(aclrtFree(a));
}

CASE(hccl_abort) {
	CHECK(fakeSet("FAKE_CANN_DESTROY", "0"));
	all(2, aborted, NULL);
}

static void in_use(rank *k) {
	void *a = filled(8, 1, 0);
	CHECK(fakeSet("FAKE_CANN_DELAY", "HcclAllReduce:100"));
	OK(HcclAllReduce(a, a, 8, HF32, SUM, k->comm, k->stream));
	WANT(20, HcclCommDestroy(k->comm));
	sync_of(k);
	OK(aclrtFree(a));
}

CASE(hccl_destroy_in_use) {
	all(2, in_use, NULL);
	violations(2);
}

static void mistakes(rank *k) {
	void *other;
	OK(HcclCommDestroy(k->comm));
	WANT(1, HcclBarrier(k->comm, k->stream)); // it is gone
	k->comm = NULL;
	(void)other;
}

CASE(hccl_stale) {
	all(2, mistakes, NULL);
	violations(2);
}

static void roots(rank *k) {
	k->comm = NULL;
	unsigned char broken[4108];
	memcpy(broken, k->root, sizeof broken);
	broken[4000] ^= 1; // one byte of the last part did not arrive
	void *comm;
	WANT(1, HcclCommInitRootInfo(1, broken, 0, &comm));
	CHECK(strstr(aclGetRecentErrMsg(), "4108"));
	CHECK(fakeSet("FAKE_CANN_TIME_SCALE", "0.001"));
}

static void *live_roots(void *arg) {
	rank *k = arg;
	OK(aclrtSetDevice(k->r));
	OK(HcclGetRootInfo(k->root));
	roots(k);
	void *comm = NULL;
	WANT(9, HcclCommInitRootInfo(2, k->root, 0, &comm)); // the other does not come: 140 s, scaled
	CHECK(strstr(aclGetRecentErrMsg(), "EI0015"));
	OK(aclrtResetDevice(k->r));
	return NULL;
}

CASE(hccl_root) {
	unsigned char root[4108];
	rank k = {.root = root};
	void *comm;
	OK(aclInit(NULL));
	WANT(15, HcclGetRootInfo(root)); // no device
	WANT(15, HcclCommInitRootInfo(1, root, 0, &comm));
	live_roots(&k);
	violations(1);
}

typedef struct hello {
	unsigned char *root;
	int device, rank, n;
	int32_t want, got; // want -1: anything
} hello;

static void *say_hello(void *arg) {
	hello *h = arg;
	void *comm = NULL;
	OK(aclrtSetDevice(h->device));
	h->got = HcclCommInitRootInfo((uint32_t)h->n, h->root, (uint32_t)h->rank, &comm);
	if (h->want >= 0) WANT(h->want, h->got);
	OK(aclrtResetDevice(h->device));
	return NULL;
}

// Whoever comes first waits for the others until the time is over; whoever comes second is refused.
static void one_refused(hello a, hello b) {
	unsigned char root[4108];
	pthread_t t;
	a.root = b.root = root;
	OK(aclrtSetDevice(0));
	OK(HcclGetRootInfo(root));
	pthread_create(&t, NULL, say_hello, &b);
	say_hello(&a);
	pthread_join(t, NULL);
	CHECK((a.got == 1 && b.got == 9) || (a.got == 9 && b.got == 1));
}

CASE(hccl_contradictions) {
	OK(aclInit(NULL));
	CHECK(fakeSet("FAKE_CANN_TIME_SCALE", "0.015"));
	one_refused((hello){.device = 1, .rank = 1, .n = 2, .want = -1}, (hello){.device = 2, .rank = 1, .n = 2, .want = -1});
	one_refused((hello){.device = 1, .rank = 1, .n = 2, .want = -1}, (hello){.device = 2, .rank = 2, .n = 3, .want = -1});
}

// The fork comes first: a child of a process that has threads may inherit a lock that nobody will release.
static void same_device(int32_t want) {
	unsigned char root[4108];
	int way[2];
	CHECK(pipe(way) == 0);
	pid_t p = fork();
	if (!p) {
		close(way[1]);
		FILE *f = fdopen(way[0], "r"); // a read of a pipe may return less
		CHECK(f && fread(root, sizeof root, 1, f) == 1);
		OK(aclInit(NULL));
		hello h = {root, 0, 1, 2, want, 0};
		say_hello(&h);
		_exit(0);
	}
	open_device(0);
	OK(HcclGetRootInfo(root));
	CHECK(write(way[1], root, sizeof root) == sizeof root);
	say_hello(&(hello){root, 0, 0, 2, want, 0});
	int status;
	CHECK(waitpid(p, &status, 0) == p && status == 0);
}

CASE(hccl_two_ranks_on_a_device) { same_device(1); }

CASE(hccl_two_ranks_on_a_device_hang) {
	CHECK(fakeSet("FAKE_CANN_TWO_RANKS", "hang") && fakeSet("FAKE_CANN_TIME_SCALE", "0.002"));
	same_device(9);
}

CASE(hccl_init_all) {
	int32_t devices[2] = {0, 1};
	void *comms[2], *streams[2], *a[2];
	float got[4];
	open_device(0);
	WANT(2, HcclCommInitAll(2, NULL, comms));
	OK(HcclCommInitAll(2, devices, comms));
	for (int i = 0; i < 2; i++) {
		OK(aclrtSetDevice(i));
		OK(aclrtCreateStream(&streams[i]));
		a[i] = filled(4, 1 + (float)i, 0);
	}
	WANT(1, HcclAllReduce(a[0], a[0], 4, HF32, SUM, comms[0], streams[1])); // the stream of another device
	for (int i = 0; i < 2; i++) {
		OK(aclrtSetDevice(i));
		OK(HcclAllReduce(a[i], a[i], 4, HF32, SUM, comms[i], streams[i]));
	}
	for (int i = 0; i < 2; i++) {
		OK(aclrtSetDevice(i));
		OK(aclrtSynchronizeStream(streams[i]));
		read_f32(got, a[i], 4);
		CHECK(got[0] == 3);
	}
	violations(1);
}

// ---- the configuration ----

static void put32(unsigned char *c, int at, uint32_t v) { memcpy(c + at, &v, 4); }

static void configure(unsigned char *c, uint64_t size, uint32_t version) {
	memset(c, 0, 2240);
	memcpy(c, &size, 8);
	put32(c, 8, 0xf0f0f0f0u);
	put32(c, 12, version);
	put32(c, 24, 0xffffffffu);
	put32(c, 28, 0xffffffffu);
	put32(c, 292, 0xffffffffu);
	put32(c, 296, 0xffffffffu);
	put32(c, 316, 0xffffffffu);
}

CASE(hccl_config) {
	static unsigned char c[2240], root[4108];
	void *comm;
	open_device(0);
	static const struct {
		int at;
		uint32_t v;
		uint64_t size;
		uint32_t version;
	} bad[] = {{8, 0xf0f0f0f1u, 300, 5}, {12, 6, 300, 5}, {8, 0xf0f0f0f0u, 304, 5}, {8, 0xf0f0f0f0u, 300, 10}, {16, 1, 300, 5}, {24, 0, 300, 5}, {28, 3, 300,
		5}, {288, 7, 300, 5},
		{292, 3, 300, 5}, {296, 8, 300, 5}, {316, 0xfffffffeu, 2232, 10}, {312, 0x100, 2240, 10}, {320, 0x78787878u, 2232, 10}};
	int n = (int)(sizeof bad / sizeof *bad);
	OK(HcclGetRootInfo(root));
	for (int i = 0; i < n; i++) {
		configure(c, bad[i].size, bad[i].version);
		put32(c, bad[i].at, bad[i].v);
		WANT(1, HcclCommInitRootInfoConfig(1, root, 0, c, &comm));
		CHECK(strstr(aclGetRecentErrMsg(), "HcclCommConfig"));
	}
	static const uint64_t good[][2] = {{300, 5}, {2232, 10}, {2240, 10}};
	for (int i = 0; i < 3; i++) {
		size_t before, during, total;
		char name[128];
		OK(HcclGetRootInfo(root));
		configure(c, good[i][0], (uint32_t)good[i][1]);
		put32(c, 24, 100);
		strcpy((char *)c + 32, "gradients");
		OK(aclrtGetMemInfo(1, &before, &total));
		OK(HcclCommInitRootInfoConfig(1, root, 0, c, &comm));
		OK(aclrtGetMemInfo(1, &during, &total));
		OK(HcclGetCommName(comm, name));
		CHECK(before - during == 200 << 20 && strcmp(name, "gradients") == 0);
		OK(HcclCommDestroy(comm));
	}
	put32(c, 24, 4096); // 8 GiB of 4
	OK(HcclGetRootInfo(root));
	WANT(24, HcclCommInitRootInfoConfig(1, root, 0, c, &comm));
	setenv("HCCL_CONNECT_TIMEOUT", "60", 1);
	WANT(1, HcclCommInitRootInfo(1, root, 0, &comm));
	CHECK(strstr(aclGetRecentErrMsg(), "EI0001"));
	unsetenv("HCCL_CONNECT_TIMEOUT");
	violations(n);
}

// sums differ in order, unless the configuration says otherwise.
static float *sums; // ranks × tries × 512

static void sum_often(rank *k) {
	float *v = calloc(8192, sizeof *v);
	for (int i = 0; i < 8192; i++) v[i] = ldexpf((float)(i % 97 + 1 + 13 * k->r), (i * 7 + k->r * 11) % 40 - 20);
	void *a = device_f32(v, 8192), *b = device_f32(v, 8192);
	for (int n = 0; n < 4; n++) {
		OK(HcclAllReduce(a, b, 8192, HF32, SUM, k->comm, k->stream));
		sync_of(k);
		read_f32(sums + ((size_t)k->r * 4 + (size_t)n) * 8192, b, 8192);
	}
	OK(aclrtFree(a));
	OK(aclrtFree(b));
	free(v);
}

static bool all_same(void) {
	for (int i = 1; i < 16; i++) {
		if (memcmp(sums, sums + (size_t)i * 8192, 8192 * 4)) return false;
	}
	return true;
}

CASE(hccl_order) {
	static unsigned char c[2240];
	sums = calloc(16 * 8192, 4);
	configure(c, 300, 5);
	all(4, sum_often, c);
	CHECK(!all_same());
	for (int n = 0; n < 4; n++) CHECK(memcmp(sums + n * 8192, sums + (4 + n) * 8192, 8192 * 4) == 0); // all ranks get the same
	put32(c, 28, 1);
	all(4, sum_often, c);
	CHECK(all_same());
}

// ---- processes ----

static void child(int r, const char *file) {
	unsigned char root[4108];
	void *comm, *stream;
	float got[4];
	OK(aclInit(NULL));
	OK(aclrtSetDevice(r));
	OK(aclrtCreateStream(&stream));
	FILE *f = NULL;
	if (r == 0) {
		char tmp[300];
		OK(HcclGetRootInfo(root));
		snprintf(tmp, sizeof tmp, "%s.tmp", file);
		CHECK((f = fopen(tmp, "w")) && fwrite(root, sizeof root, 1, f) == 1 && fclose(f) == 0 && rename(tmp, file) == 0);
	} else {
		while (!(f = fopen(file, "r"))) pause_ms(5);
		CHECK(fread(root, sizeof root, 1, f) == 1);
		fclose(f);
	}
	OK(HcclCommInitRootInfo(2, root, (uint32_t)r, &comm));
	void *a = filled(4, 1 + (float)r, 0);
	OK(HcclAllReduce(a, a, 4, HF32, SUM, comm, stream));
	OK(aclrtSynchronizeStream(stream));
	read_f32(got, a, 4);
	CHECK(got[3] == 3);
	OK(HcclCommDestroy(comm));
	_exit(0);
}

CASE(hccl_processes) {
	char file[200];
	const char *tmp = getenv("TMPDIR");
	snprintf(file, sizeof file, "%s/fakecann-root-%d", tmp ? tmp : "/tmp", (int)getpid());
	pid_t p[2];
	for (int r = 0; r < 2; r++) {
		if (!(p[r] = fork())) child(r, file);
	}
	for (int r = 0; r < 2; r++) {
		int status;
		CHECK(waitpid(p[r], &status, 0) == p[r] && status == 0);
	}
	unlink(file);
}

// ---- rank tables and groups ----

static const char *table_file(const char *status, const char *version) {
	static char file[200];
	const char *tmp = getenv("TMPDIR");
	snprintf(file, sizeof file, "%s/fakecann-table-%d.json", tmp ? tmp : "/tmp", (int)getpid());
	FILE *f = fopen(file, "w");
	CHECK(f);
	fprintf(f, "{\"status\": \"%s\", \"version\": \"%s\", \"server_count\": \"1\", \"server_list\": [{\"server_id\": \"node-%d\", \"device\": [\n", status,
		version, (int)getpid());
	fprintf(f, "{\"device_id\": \"0\", \"device_ip\": \"198.51.100.10\", \"rank_id\": \"0\"},\n{\"device_id\": \"1\", \"rank_id\": \"1\"}]}]}\n");
	fclose(f);
	return file;
}

typedef struct member {
	const char *file;
	int r;
	int32_t want;
} member;

static void *join_by_table(void *arg) {
	member *m = arg;
	void *comm = NULL;
	OK(aclrtSetDevice(m->r));
	WANT(m->want, HcclCommInitClusterInfo((void *)(uintptr_t)m->file, (uint32_t)m->r, &comm));
	uint32_t n = 0;
	if (comm) OK(HcclGetRankSize(comm, &n));
	CHECK(!comm || n == 2);
	if (comm) OK(HcclCommDestroy(comm));
	OK(aclrtResetDevice(m->r));
	return NULL;
}

CASE(hccl_rank_table) {
	pthread_t t;
	void *comm;
	open_device(0);
	WANT(10, HcclCommInitClusterInfo((void *)(uintptr_t)"/nonexistent/table.json", 0, &comm));
	WANT(1, HcclCommInitClusterInfo((void *)(uintptr_t)table_file("initializing", "1.0"), 0, &comm));
	CHECK(strstr(aclGetRecentErrMsg(), "EI0004"));
	WANT(1, HcclCommInitClusterInfo((void *)(uintptr_t)table_file("completed", "1.2"), 0, &comm));
	CHECK(strstr(aclGetRecentErrMsg(), "EI0014"));
	const char *file = table_file("completed", "1.0");
	WANT(1, HcclCommInitClusterInfo((void *)(uintptr_t)file, 5, &comm)); // no such rank
	WANT(1, HcclCommInitClusterInfo((void *)(uintptr_t)file, 1, &comm)); // the thread has another device
	pthread_create(&t, NULL, join_by_table, &(member){file, 1, 0});
	join_by_table(&(member){file, 0, 0});
	pthread_join(t, NULL);
	unlink(file);
}

static void groups(rank *k) {
	static unsigned char c[2240];
	float got[4];
	uint32_t ids[2] = {0, 2};
	void *sub = NULL, *a = filled(4, 1 + (float)k->r, 0);
	if (k->r == 0) configure(c, 300, 5);
	OK(HcclBarrier(k->comm, k->stream));
	sync_of(k);
	if (k->r == 1) {
		OK(HcclCreateSubCommConfig(&k->comm, 0, NULL, 7, 0, c, &sub));
		CHECK(!sub);
	} else {
		OK(HcclCreateSubCommConfig(&k->comm, 2, ids, 7, (uint32_t)k->r / 2, c, &sub));
		OK(HcclAllReduce(a, a, 4, HF32, SUM, sub, k->stream));
		sync_of(k);
		read_f32(got, a, 4);
		CHECK(got[0] == 4);
		OK(HcclCommDestroy(sub));
	}
	OK(aclrtFree(a));
}

CASE(hccl_groups) { all(RANKS, groups, NULL); }

CASE(hccl_settings) {
	unsigned char root[4108];
	void *comm;
	union {
		struct fk_s4 s;
		int32_t v;
	} value = {.v = 1};
	int32_t v;
	open_device(0);
	CHECK(HcclGetCommConfigCapability() == 12); // of 9.0
	OK(HcclSetConfig(0, value.s));
	OK(HcclGetConfig(0, &v));
	CHECK(v == 1);
	WANT(1, HcclSetConfig(1, value.s));
	OK(HcclGetRootInfo(root));
	static const char *const bad[][2] = {{"HCCL_BUFFSIZE", "0"}, {"HCCL_EXEC_TIMEOUT", "-1"}, {"HCCL_ALGO", "tree"}, {"HCCL_CONNECT_TIMEOUT", "soon"}};
	for (int i = 0; i < 4; i++) {
		setenv(bad[i][0], bad[i][1], 1);
		WANT(1, HcclCommInitRootInfo(1, root, 0, &comm));
		CHECK(strstr(aclGetRecentErrMsg(), bad[i][0]));
		unsetenv(bad[i][0]);
	}
}

// What loading the libraries of another version does.
void fk_loaded(int version);

CASE(hccl_of_version_8) {
	static unsigned char c[2240], root[4108];
	int32_t major, minor, patch;
	void *comm;
	fk_loaded(81);
	open_device(0);
	OK(aclrtGetVersion(&major, &minor, &patch));
	CHECK(minor == 13 && HcclGetCommConfigCapability() == 5);
	OK(HcclGetRootInfo(root));
	configure(c, 2232, 10);
	WANT(1, HcclCommInitRootInfoConfig(1, root, 0, c, &comm));
	configure(c, 300, 5);
	OK(HcclCommInitRootInfoConfig(1, root, 0, c, &comm));
	OK(HcclCommDestroy(comm));
	violations(1);
}

static void on_950(rank *k) {
	void *a = filled(8, 1, 0);
	int32_t async;
	OK(HcclAllReduce(a, a, 4, HF64, SUM, k->comm, k->stream)); // this chip adds doubles
	sync_of(k);
	WANT(5, HcclGetCommAsyncError(k->comm, &async));
	OK(aclrtFree(a));
}

CASE(hccl_of_950) {
	CHECK(fakeSet("FAKE_CANN_SOC", "950"));
	all(2, on_950, NULL);
}

CASE(hccl_always_deterministic) {
	CHECK(fakeSet("FAKE_CANN_SOC", "A3"));
	sums = calloc(16 * 8192, 4);
	all(4, sum_often, NULL);
	CHECK(all_same());
}
