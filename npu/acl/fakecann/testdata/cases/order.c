// Order of accesses: FAKE_CANN_ORDER.
#include "test.h"

typedef struct scene {
	void *a, *b, *d, *e, *host;
} scene;

static scene set_up(void) {
	scene s;
	CHECK(fakeSet("FAKE_CANN_ORDER", "1"));
	open_device(0);
	OK(aclrtCreateStream(&s.a));
	OK(aclrtCreateStream(&s.b));
	OK(aclrtCreateEventExWithFlag(&s.e, 1));
	OK(aclrtMalloc(&s.d, 128, 0));
	OK(aclrtMallocHost(&s.host, 128));
	return s;
}

static void tear_down(scene *s) {
	OK(aclrtDestroyStream(s->a));
	OK(aclrtDestroyStream(s->b));
	OK(aclrtDestroyEvent(s->e));
	OK(aclrtFree(s->d));
	OK(aclrtFreeHost(s->host));
	close_device(0);
}

static void write_on(scene *s, void *stream, int at) { OK(aclrtMemsetAsync((char *)s->d + at, 32, 1, 32, stream)); }

static void read_on(scene *s, void *stream, int at) { OK(aclrtMemcpyAsync((char *)s->host + at, 32, (char *)s->d + at, 32, D2H, stream)); }

CASE(order_kept) {
	scene s = set_up();
	for (int i = 0; i < 3; i++) {
		write_on(&s, s.a, 0);
		OK(aclrtRecordEvent(s.e, s.a));
		write_on(&s, s.b, 32); // another place
		OK(aclrtStreamWaitEvent(s.b, s.e));
		read_on(&s, s.b, 0);
		OK(aclrtSynchronizeStream(s.b)); // the host knows, and tells the other stream
	}
	tear_down(&s);
}

CASE(order_of_readers) {
	scene s = set_up();
	read_on(&s, s.a, 0);
	OK(aclrtMemcpyAsync((char *)s.host + 64, 32, s.d, 32, D2H, s.b)); // both read
	tear_down(&s);
}

CASE(order_missing) {
	scene s = set_up();
	write_on(&s, s.a, 0);
	read_on(&s, s.b, 0); // nothing says that the first is over
	OK(aclrtSynchronizeDevice());
	write_on(&s, s.a, 0);
	OK(aclrtRecordEvent(s.e, s.a));
	write_on(&s, s.a, 0); // behind the event
	OK(aclrtStreamWaitEvent(s.b, s.e));
	write_on(&s, s.b, 0);
	OK(aclrtSynchronizeDevice());
	violations(2);
	tear_down(&s);
}

CASE(order_of_the_host) {
	char got[32];
	scene s = set_up();
	write_on(&s, s.a, 0);
	OK(aclrtMemcpy(got, 32, s.d, 32, D2H)); // it does not wait for the stream
	OK(aclrtSynchronizeStream(s.a));
	OK(aclrtMemcpy(got, 32, s.d, 32, D2H));
	OK(aclrtMemset(s.d, 32, 0, 32));
	read_on(&s, s.b, 0);
	OK(aclrtSynchronizeStream(s.b));
	violations(1);
	tear_down(&s);
}

CASE(order_of_free) {
	scene s = set_up();
	write_on(&s, s.a, 0);
	pause_ms(50); // it is over, but nothing says so
	OK(aclrtFree(s.d));
	OK(aclrtMalloc(&s.d, 128, 0));
	violations(1);
	tear_down(&s);
}

CASE(order_of_operators) {
	static const float v[8] = {0};
	void *ex;
	uint64_t bytes;
	scene s = set_up();
	void *x = device_f32(v, 8), *y = device_f32(v, 8), *tx = vec(x, 8), *ty = vec(y, 8), *alpha = scalar(1);
	for (int i = 0; i < 2; i++) {
		OK(aclnnAddGetWorkspaceSize(tx, tx, alpha, ty, &bytes, &ex));
		void *ws = workspace(bytes);
		OK(aclnnAdd(ws, bytes, ex, i ? s.b : s.a)); // both write y
		if (ws && i) OK(aclrtSynchronizeDevice());
		if (ws && i) OK(aclrtFree(ws));
	}
	OK(aclrtSynchronizeDevice());
	violations(1);
}
