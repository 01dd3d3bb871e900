// Threads, contexts, streams.
#include "test.h"

static void *without_device(void *arg) {
	void *p;
	(void)arg;
	WANT(107002, aclrtMalloc(&p, 64, 0));
	CHECK(strstr(aclGetRecentErrMsg(), "EE1001"));
	WANT(107002, aclrtCreateStream(&p));
	WANT(107002, aclrtSynchronizeDevice());
	int32_t device;
	WANT(107002, aclrtGetDevice(&device));
	return NULL;
}

CASE(thread_without_device) {
	pthread_t t;
	open_device(0);
	pthread_create(&t, NULL, without_device, NULL);
	pthread_join(t, NULL);
	CHECK(stat("threads") == 2);
	CHECK(aclGetRecentErrMsg() == NULL); // texts belong to threads
	close_device(0);
}

CASE(before_init) {
	WANT(100001, aclrtSetDevice(0));
	uint32_t n;
	WANT(100001, aclrtGetDeviceCount(&n));
	CHECK(aclrtGetSocName() == NULL);
	OK(aclInit(NULL));
	WANT(100002, aclInit(NULL));
	WANT(107001, aclrtSetDevice(8));
	WANT(107001, aclrtSetDevice(-1));
	CHECK(strcmp(aclrtGetSocName(), "Ascend910B3") == 0);
	OK(aclFinalize());
	WANT(100037, aclFinalize());
	violations(2);
}

CASE(streams_of_contexts) {
	void *s0, *first, *second, *event;
	open_device(0);
	OK(aclrtGetCurrentContext(&first));
	OK(aclrtCreateStream(&s0));
	OK(aclrtCreateEventExWithFlag(&event, 9));
	OK(aclrtSetDevice(1));
	OK(aclrtGetCurrentContext(&second));
	WANT(107003, aclrtSynchronizeStream(s0));
	WANT(107003, aclrtDestroyStream(s0));
	WANT(107003, aclrtRecordEvent(event, s0));
	WANT(107003, aclrtRecordEvent(event, NULL)); // the event of another context
	OK(aclrtSetCurrentContext(first));
	OK(aclrtDestroyEvent(event));
	OK(aclrtDestroyStream(s0));
	WANT(107017, aclrtSynchronizeStream(s0));
	WANT(107017, aclrtSynchronizeStream(&s0)); // no handle at all
	OK(aclrtResetDevice(1));
	WANT(107017, aclrtSetCurrentContext(second));
	violations(7);
	close_device(0);
}

CASE(reset_with_leftovers) {
	void *s, *p;
	open_device(0);
	OK(aclrtCreateStream(&s));
	OK(aclrtMalloc(&p, 64, 0));
	OK(aclrtResetDevice(0));
	WANT(107001, aclrtResetDevice(0));
	violations(3);
}

CASE(contexts) {
	void *own, *primary, *got, *s;
	open_device(0);
	OK(aclrtGetCurrentContext(&primary));
	OK(aclrtCreateContext(&own, 0));
	OK(aclrtGetCurrentContext(&got));
	CHECK(got == own);
	OK(aclrtCreateStream(&s));
	OK(aclrtDestroyStream(s));
	OK(aclrtDestroyContext(own));
	WANT(107002, aclrtCreateStream(&s));
	OK(aclrtSetCurrentContext(primary));
	WANT(107000, aclrtDestroyContext(primary));
	int64_t v = 5;
	OK(aclrtSetSysParamOpt(0, 1));
	OK(aclrtCtxGetSysParamOpt(0, &v));
	CHECK(v == 1);
	OK(aclrtCtxSetSysParamOpt(0, 0));
	OK(aclrtCtxGetSysParamOpt(0, &v));
	CHECK(v == 0);
	WANT(107000, aclrtSetSysParamOpt(9, 1));
	violations(1);
	close_device(0);
}

CASE(streams_are_asynchronous) {
	void *a, *b, *p;
	int32_t status;
	open_device(0);
	OK(aclrtCreateStreamWithConfig(&a, 0, 3));
	OK(aclrtCreateStream(&b));
	OK(aclrtMalloc(&p, 64, 0));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:60"));
	OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtStreamQuery(a, &status));
	CHECK(status == 1); // not ready
	OK(aclrtStreamQuery(b, &status));
	CHECK(status == 0);
	WANT(507046, aclrtSynchronizeStreamWithTimeout(a, 5));
	WANT(507046, aclrtSynchronizeDeviceWithTimeout(5));
	OK(aclrtSynchronizeStreamWithTimeout(a, 5000));
	OK(aclrtStreamQuery(a, &status));
	CHECK(status == 0);
	// An abort drops what waits; what runs comes to its end.
	for (int i = 0; i < 20; i++) OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtStreamAbort(a));
	WANT(107023, aclrtSynchronizeStreamWithTimeout(a, 600));
	OK(aclrtSynchronizeStream(a));
	for (int i = 0; i < 20; i++) OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtDestroyStreamForce(a)); // does not wait for 20 times 60 ms
	OK(aclrtDestroyStream(b));
	OK(aclrtFree(p));
	close_device(0);
}

CASE(failure_mode) {
	void *s, *p;
	unsigned char got[64];
	open_device(0);
	OK(aclrtMalloc(&p, 64, 0));
	OK(aclrtMemset(p, 64, 1, 64));
	OK(aclrtCreateStream(&s));
	for (int stop = 0; stop < 2; stop++) {
		OK(aclrtSetStreamFailureMode(s, (uint64_t)stop));
		CHECK(fakeSet("FAKE_CANN_INJECT", "aclrtMemsetAsync:1:107020@"));
		OK(aclrtMemsetAsync(p, 64, 2, 64, s)); // fails on the stream
		OK(aclrtMemsetAsync(p, 64, (int32_t)(3 + stop), 64, s));
		WANT(107020, aclrtSynchronizeStream(s));
		OK(aclrtMemcpy(got, 64, p, 64, D2H));
		CHECK(got[0] == 3); // the second ran in the first mode only
	}
	WANT(107020, aclrtSynchronizeStream(s)); // it stays failed
	WANT(107000, aclrtSetStreamFailureMode(NULL, 1));
	OK(aclrtDestroyStream(s));
	OK(aclrtFree(p));
	close_device(0);
}

CASE(events) {
	void *a, *b, *e, *f, *plain, *p;
	int32_t status;
	float ms;
	uint64_t t0, t1;
	open_device(0);
	OK(aclrtCreateStream(&a));
	OK(aclrtCreateStream(&b));
	OK(aclrtMalloc(&p, 64, 0));
	OK(aclrtCreateEventExWithFlag(&e, 9));
	OK(aclrtCreateEventExWithFlag(&f, 9));
	OK(aclrtCreateEventWithFlag(&plain, 8));
	WANT(107000, aclrtStreamWaitEvent(b, plain)); // no SYNC
	WANT(107000, aclrtStreamWaitEvent(b, e));     // never recorded
	WANT(107000, aclrtQueryEventStatus(e, &status));
	WANT(107000, aclrtSynchronizeEvent(e));
	violations(4);
	WANT(107006, aclrtEventElapsedTime(&ms, e, f));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:40"));
	OK(aclrtRecordEvent(e, a));
	OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtRecordEvent(f, a));
	OK(aclrtStreamWaitEvent(b, f));
	OK(aclrtStreamQuery(b, &status));
	CHECK(status == 1);
	OK(aclrtQueryEventStatus(f, &status));
	CHECK(status == 0); // 0 is not ready
	WANT(107006, aclrtEventGetTimestamp(f, &t1));
	WANT(507047, aclrtSynchronizeEventWithTimeout(f, 2));
	OK(aclrtSynchronizeEvent(f));
	OK(aclrtSynchronizeStream(b));
	OK(aclrtQueryEventStatus(f, &status));
	CHECK(status == 1);
	OK(aclrtEventElapsedTime(&ms, e, f));
	OK(aclrtEventGetTimestamp(e, &t0));
	OK(aclrtEventGetTimestamp(f, &t1));
	CHECK(ms >= 40 && t1 - t0 >= 40000);
	WANT(107007, aclrtEventElapsedTime(&ms, f, e));
	// Recorded again, it waits again; a wait before that means the first record.
	OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtRecordEvent(f, a));
	OK(aclrtQueryEventStatus(f, &status));
	CHECK(status == 0);
	OK(aclrtDestroyEvent(f)); // legal before it is complete
	WANT(107017, aclrtSynchronizeEvent(f));
	violations(5);
	OK(aclrtSynchronizeStream(a));
	OK(aclrtDestroyEvent(e));
	OK(aclrtDestroyEvent(plain));
	OK(aclrtDestroyStream(a));
	OK(aclrtDestroyStream(b));
	OK(aclrtFree(p));
	close_device(0);
}

CASE(wait_timeout) {
	void *a, *b, *e, *p;
	open_device(0);
	OK(aclrtCreateStream(&a));
	OK(aclrtCreateStream(&b));
	OK(aclrtMalloc(&p, 64, 0));
	OK(aclrtCreateEventExWithFlag(&e, 1));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:1300"));
	OK(aclrtSetOpWaitTimeout(1));
	OK(aclrtMemsetAsync(p, 64, 0, 64, a));
	OK(aclrtRecordEvent(e, a));
	OK(aclrtStreamWaitEvent(b, e));
	WANT(107019, aclrtSynchronizeStream(b));
	OK(aclrtSynchronizeStream(a));
}
