// Memory and copies.
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

static void add_on(void *a, void *b, void *c, int n, void *stream) {
	void *ta = vec(a, n), *tb = vec(b, n), *tc = vec(c, n), *alpha = scalar(1), *ex;
	uint64_t bytes;
	OK(aclnnAddGetWorkspaceSize(ta, tb, alpha, tc, &bytes, &ex));
	static _Thread_local void *ws;
	if (bytes && !ws) ws = workspace(bytes);
	OK(aclnnAdd(bytes ? ws : NULL, bytes, ex, stream));
	aclDestroyTensor(ta);
	aclDestroyTensor(tb);
	aclDestroyTensor(tc);
	aclDestroyScalar(alpha);
}

CASE(fresh_memory) {
	unsigned char got[100];
	void *p, *large;
	open_device(0);
	OK(aclrtMalloc(&p, 100, 0));
	OK(aclrtMemcpy(got, 100, p, 100, D2H));
	for (int i = 0; i < 100; i++) CHECK(got[i] == 0xA5);
	CHECK((uintptr_t)p % 64 == 0);
	OK(aclrtMalloc(&large, 1 << 30, 0)); // costs nothing until it is written
	OK(aclrtMemcpy(got, 100, (char *)large + (1 << 30) - 100, 100, D2H));
	for (int i = 0; i < 100; i++) CHECK(got[i] == 0xA5);
	OK(aclrtFree(p));
	OK(aclrtFree(large));
	close_device(0);
}

CASE(malloc_refuses) {
	void *p;
	size_t left, total;
	open_device(0);
	WANT(107000, aclrtMalloc(&p, 0, 0));
	WANT(107000, aclrtMalloc(NULL, 8, 0));
	WANT(107000, aclrtMalloc(&p, 8, 99));
	WANT(207001, aclrtMalloc(&p, (uint64_t)1 << 40, 0));
	CHECK(strstr(aclGetRecentErrMsg(), "EL0004"));
	CHECK(aclGetRecentErrMsg() == NULL); // it was taken
	OK(aclrtGetMemInfo(1, &left, &total));
	CHECK(left == total && total == (size_t)4096 << 20);
	close_device(0);
}

CASE(free_twice) {
	void *p;
	open_device(0);
	OK(aclrtMalloc(&p, 64, 0));
	OK(aclrtFree(p));
	WANT(107000, aclrtFree(p));
	WANT(107000, aclrtFree(NULL));
	WANT(107000, aclrtFreeHost((char *)p + 1));
	OK(aclrtMallocHost(&p, 64));
	WANT(107000, aclrtFree(p));
	OK(aclrtFreeHost(p));
	violations(4);
}

CASE(host_reads_device_memory) {
	void *p;
	open_device(0);
	OK(aclrtMalloc(&p, 64, 0));
	pid_t child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		close(2);
		_exit(*(volatile char *)p == 0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) > 1); // a sanitizer makes a code of it
	OK(aclrtFree(p));
}

CASE(kernel_meets_freed_memory) {
	static const float v[4] = {1, 2, 3, 4};
	void *stream, *p;
	open_device(0);
	OK(aclrtCreateStream(&stream));
	void *a = device_f32(v, 4), *b = device_f32(v, 4), *c = device_f32(v, 4);
	OK(aclrtFree(b));
	add_on(a, b, c, 4, stream);
	WANT(507015, aclrtSynchronizeStream(stream));
	CHECK(strstr(aclGetRecentErrMsg(), "freed"));
	WANT(507015, aclrtSynchronizeStream(stream)); // the context stays dead
	WANT(507015, aclrtMalloc(&p, 64, 0));
	WANT(507015, aclrtFree(a));
	WANT(507015, aclrtDestroyStream(stream));
	CHECK(stat("streams") == 0); // nothing leaks, all the same
}

CASE(kernel_meets_foreign_memory) {
	static float v[8] __attribute__((aligned(64)));
	open_device(0);
	void *a = device_f32(v, 8);
	add_on(v, a, a, 8, NULL);
	WANT(507015, aclrtSynchronizeStream(NULL));
}

CASE(kernel_beyond_its_block) {
	static const float v[8] = {0};
	open_device(0);
	void *a = device_f32(v, 8);
	add_on(a, a, a, 9, NULL);
	WANT(507015, aclrtSynchronizeDevice());
	CHECK(strstr(aclGetRecentErrMsg(), "behind their block"));
}

CASE(memory_of_another_device) {
	static const float v[8] = {0};
	open_device(0);
	void *a = device_f32(v, 8);
	OK(aclrtSetDevice(1));
	add_on(a, a, a, 8, NULL);
	WANT(507015, aclrtSynchronizeStream(NULL));
}

CASE(pinned_memory_overrun) {
	char *p;
	open_device(0);
	OK(aclrtMallocHost((void **)&p, 100));
	CHECK((uintptr_t)p % 64 == 0 && (unsigned char)p[99] == 0xA5);
	p[100] = 1;
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtFreeHost(p));
	violations(1);
}

// A copy from page-locked memory reads it late; from other memory before the call returns.
CASE(copies_are_late) {
	float *host, got[4], other[4] = {5, 5, 5, 5};
	void *d, *stream;
	open_device(0);
	OK(aclrtCreateStream(&stream));
	OK(aclrtMalloc(&d, 16, 0));
	OK(aclrtMallocHost((void **)&host, 16));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:80"));
	OK(aclrtMemsetAsync(d, 16, 0, 16, stream)); // keeps the stream busy
	for (int i = 0; i < 4; i++) host[i] = 1;
	OK(aclrtMemcpyAsync(d, 16, host, 16, H2D, stream));
	for (int i = 0; i < 4; i++) host[i] = 2; // too early
	OK(aclrtSynchronizeStream(stream));
	read_f32(got, d, 4);
	CHECK(got[0] == 2);
	OK(aclrtMemsetAsync(d, 16, 0, 16, stream));
	OK(aclrtMemcpyAsync(d, 16, other, 16, H2D, stream));
	for (int i = 0; i < 4; i++) other[i] = 6;
	OK(aclrtSynchronizeStream(stream));
	read_f32(got, d, 4);
	CHECK(got[0] == 5 && stat("pageable_copies") == 1);
	OK(aclrtFreeHost(host));
	OK(aclrtFree(d));
	OK(aclrtDestroyStream(stream));
	close_device(0);
}

CASE(pinned_memory_freed_too_early) {
	void *d, *host;
	open_device(0);
	OK(aclrtMalloc(&d, 16, 0));
	OK(aclrtMallocHost(&host, 16));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:50"));
	OK(aclrtMemsetAsync(d, 16, 0, 16, NULL));
	OK(aclrtMemcpyAsync(d, 16, host, 16, H2D, NULL));
	OK(aclrtFreeHost(host));
	WANT(507015, aclrtSynchronizeStream(NULL));
	violations(2);
}

CASE(copy_refuses) {
	char host[16];
	void *d, *pinned;
	open_device(0);
	OK(aclrtMalloc(&d, 16, 0));
	OK(aclrtMallocHost(&pinned, 16));
	WANT(107000, aclrtMemcpy(d, 8, host, 16, H2D));          // destMax
	WANT(107000, aclrtMemcpy(d, 16, host, 16, D2H));         // the wrong kind
	WANT(107000, aclrtMemcpy(host, 16, d, 16, D2D));
	WANT(107000, aclrtMemcpy((char *)d + 8, 16, host, 16, H2D)); // beyond the block
	WANT(107000, aclrtMemcpyAsync(pinned, 32, d, 32, D2H, NULL));
	WANT(107000, aclrtMemset(host, 16, 0, 16));
	WANT(107000, aclrtMemset(d, 8, 0, 16));
	violations(7);
	WANT(107000, aclrtMemcpy(NULL, 16, host, 16, H2D));
	WANT(107000, aclrtMemcpy(d, 16, host, 0, H2D));
	WANT(107000, aclrtMemcpy(d, 16, host, 16, 42));
	WANT(207000, aclrtMemcpyAsync(pinned, 16, host, 16, 0, NULL));
	OK(aclrtMemcpy(pinned, 16, host, 16, 0));
	OK(aclrtMemcpy(d, 16, host, 16, 4));
	OK(aclrtFree(d));
	OK(aclrtFreeHost(pinned));
	close_device(0);
}
