// Executors, workspaces and tensors.
#include "test.h"

static const float one[4] = {1, 2, 3, 4}, two[4] = {10, 20, 30, 40};

typedef struct sum {
	void *a, *b, *c, *ta, *tb, *tc, *alpha, *ex, *ws;
	uint64_t bytes;
} sum;

static sum begin(void) {
	sum s = {.a = device_f32(one, 4), .b = device_f32(two, 4), .c = device_f32(one, 4)};
	s.ta = vec(s.a, 4);
	s.tb = vec(s.b, 4);
	s.tc = vec(s.c, 4);
	s.alpha = scalar(2);
	OK(aclnnAddGetWorkspaceSize(s.ta, s.tb, s.alpha, s.tc, &s.bytes, &s.ex));
	s.ws = workspace(s.bytes);
	return s;
}

static void tensors_gone(sum *s) {
	OK(aclDestroyTensor(s->ta));
	OK(aclDestroyTensor(s->tb));
	OK(aclDestroyTensor(s->tc));
	OK(aclDestroyScalar(s->alpha));
}

static void memory_gone(sum *s) {
	OK(aclrtFree(s->a));
	OK(aclrtFree(s->b));
	OK(aclrtFree(s->c));
	if (s->ws) OK(aclrtFree(s->ws));
}

CASE(add) {
	float got[4];
	open_device(0);
	sum s = begin();
	OK(aclnnAdd(s.ws, s.bytes, s.ex, NULL));
	tensors_gone(&s); // the launch has what it needs
	OK(aclrtSynchronizeStream(NULL));
	read_f32(got, s.c, 4);
	for (int i = 0; i < 4; i++) CHECK(got[i] == one[i] + 2 * two[i]);
	memory_gone(&s);
	close_device(0);
}

CASE(executor_twice) {
	open_device(0);
	sum s = begin();
	OK(aclnnAdd(s.ws, s.bytes, s.ex, NULL));
	WANT(561103, aclnnAdd(s.ws, s.bytes, s.ex, NULL));
	WANT(561103, aclDestroyAclOpExecutor(s.ex));
	violations(2);
}

CASE(executor_leaks) {
	open_device(0);
	begin();
	CHECK(stat("leaked_executors") == 1);
}

CASE(executor_unused) {
	open_device(0);
	sum s = begin();
	OK(aclDestroyAclOpExecutor(s.ex));
	tensors_gone(&s);
	memory_gone(&s);
	close_device(0);
}

CASE(executor_of_another_operator) {
	open_device(0);
	sum s = begin();
	WANT(561103, aclnnMul(s.ws, s.bytes, s.ex, NULL));
	violations(1);
}

CASE(executor_repeated) {
	float got[4];
	open_device(0);
	sum s = begin();
	OK(aclSetAclOpExecutorRepeatable(s.ex));
	void *other = device_f32(two, 4);
	for (int i = 0; i < 3; i++) OK(aclnnAdd(s.ws, s.bytes, s.ex, NULL));
	OK(aclSetInputTensorAddr(s.ex, 0, s.ta, other)); // what was enqueued keeps its address
	OK(aclrtSynchronizeStream(NULL));
	read_f32(got, s.c, 4);
	CHECK(got[3] == 84);
	OK(aclnnAdd(s.ws, s.bytes, s.ex, NULL));
	OK(aclrtSynchronizeStream(NULL));
	read_f32(got, s.c, 4);
	CHECK(got[3] == 120);
	WANT(161002, aclSetInputTensorAddr(s.ex, 2, s.ta, other)); // there are two
	OK(aclSetOutputTensorAddr(s.ex, 0, s.tc, other));
	OK(aclSetTensorAddr(s.ex, 2, s.tc, s.c));
	OK(aclDestroyAclOpExecutor(s.ex));
	tensors_gone(&s);
	memory_gone(&s);
	OK(aclrtFree(other));
	close_device(0);
}

CASE(tensor_destroyed_under_a_repeatable_executor) {
	open_device(0);
	sum s = begin();
	OK(aclSetAclOpExecutorRepeatable(s.ex));
	OK(aclDestroyTensor(s.ta));
	OK(aclDestroyScalar(s.alpha));
	violations(2);
}

static void *repeatable_elsewhere(void *ex) {
	OK(aclrtSetDevice(0));
	aclSetAclOpExecutorRepeatable(ex);
	return NULL;
}

// These two end the process.
CASE(abort_repeatable_on_another_thread) {
	pthread_t t;
	open_device(0);
	sum s = begin();
	pthread_create(&t, NULL, repeatable_elsewhere, s.ex);
	pthread_join(t, NULL);
}

CASE(abort_repeatable_after_another_phase) {
	open_device(0);
	sum s = begin();
	begin();
	aclSetAclOpExecutorRepeatable(s.ex);
}

CASE(workspace) {
	static const float v[512] = {0};
	open_device(0);
	sum s = {.a = device_f32(v, 512)};
	void *t = vec(s.a, 512), *alpha = scalar(1), *ex, *ws;
	unsigned char got[64];
	// An operator for which the fake wants a workspace.
	OK(aclnnInplaceDivsGetWorkspaceSize(t, alpha, &s.bytes, &ex));
	CHECK(s.bytes > 0);
	OK(aclSetAclOpExecutorRepeatable(ex));
	ws = workspace(s.bytes + 64);
	WANT(161001, aclnnInplaceDivs(NULL, s.bytes, ex, NULL));
	WANT(161002, aclnnInplaceDivs(ws, s.bytes - 1, ex, NULL));
	WANT(161002, aclnnInplaceDivs((char *)ws + 8, s.bytes, ex, NULL));       // not aligned
	WANT(161002, aclnnInplaceDivs((char *)ws + 128, s.bytes, ex, NULL));     // beyond its block
	WANT(161002, aclnnInplaceDivs((void *)((uintptr_t)&s & ~63ul), s.bytes, ex, NULL)); // host memory
	OK(aclrtMemset(ws, s.bytes, 7, s.bytes));
	OK(aclnnInplaceDivs(ws, s.bytes, ex, NULL));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemcpy(got, 64, ws, 64, D2H));
	CHECK(got[0] == 0xDB); // nothing is left in it
	violations(5);
}

CASE(workspace_shared_by_streams) {
	static const float v[16] = {0};
	void *a, *b, *ex1, *ex2;
	uint64_t bytes;
	open_device(0);
	OK(aclrtCreateStream(&a));
	OK(aclrtCreateStream(&b));
	void *t = vec(device_f32(v, 16), 16), *u = vec(device_f32(v, 16), 16), *alpha = scalar(1);
	OK(aclnnInplaceDivsGetWorkspaceSize(t, alpha, &bytes, &ex1));
	OK(aclnnInplaceDivsGetWorkspaceSize(u, alpha, &bytes, &ex2));
	void *ws = workspace(bytes);
	CHECK(fakeSet("FAKE_CANN_DELAY", "InplaceDivs:50"));
	OK(aclnnInplaceDivs(ws, bytes, ex1, a));
	OK(aclnnInplaceDivs(ws, bytes, ex2, b));
	OK(aclrtSynchronizeDevice());
	violations(2); // from the order, and because it happened
}

CASE(tensors) {
	static const float v[16] = {0};
	int64_t d[2] = {4, 4}, strides[2] = {1, 4}, far[2] = {8, 1}, negative[2] = {-1, 1}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, n = 16;
	open_device(0);
	void *a = device_f32(v, 16), *t;
	CHECK((t = aclCreateTensor(d, 2, F32, strides, 0, 2, &n, 1, a))); // transposed
	OK(aclDestroyTensor(t));
	WANT(161002, aclDestroyTensor(t));
	WANT(161002, aclDestroyScalar(a));
	CHECK(!aclCreateTensor(d, 2, F32, far, 0, 2, &n, 1, a));           // beyond the storage
	CHECK(!aclCreateTensor(d, 2, F32, strides, 1, 2, &n, 1, a));
	CHECK(!aclCreateTensor(d, 2, F32, negative, 0, 2, &n, 1, a));
	CHECK(!aclCreateTensor(nine, 9, F32, NULL, 0, 2, nine, 9, a));
	CHECK(!aclCreateTensor(d, 2, 5, strides, 0, 2, &n, 1, a));         // no dtype has this number
	CHECK(!aclCreateTensor(d, 2, F32, strides, 0, 99, &n, 1, a));
	CHECK(!aclCreateTensor(d, 2, F32, strides, 0, 2, &n, 1, (char *)a + 4));
	CHECK(strstr(aclGetRecentErrMsg(), "32 bytes"));
	violations(9);
	CHECK((t = aclCreateTensor(NULL, 0, F32, NULL, 0, 2, NULL, 0, a))); // one number
	OK(aclDestroyTensor(t));
	OK(aclrtFree(a));
	close_device(0);
}

CASE(lists_own_their_tensors) {
	static const float v[4] = {0};
	open_device(0);
	void *a = device_f32(v, 4), *t[2] = {vec(a, 4), vec(a, 4)}, *list, *again;
	CHECK((list = aclCreateTensorList(t, 2)));
	CHECK(!(again = aclCreateTensorList(t, 2)));
	WANT(161002, aclDestroyTensor(t[0]));
	OK(aclDestroyTensorList(list));
	WANT(161002, aclDestroyTensor(t[0]));
	violations(3);
	OK(aclrtFree(a));
	close_device(0);
}

CASE(arrays) {
	int64_t i[2] = {1, 2};
	float f = 3;
	bool b[3] = {true, false, true};
	open_device(0);
	void *ia = aclCreateIntArray(i, 2), *fa = aclCreateFloatArray(&f, 1), *ba = aclCreateBoolArray(b, 3), *empty = aclCreateIntArray(NULL, 0);
	WANT(161002, aclDestroyIntArray(fa));
	OK(aclDestroyIntArray(ia));
	OK(aclDestroyFloatArray(fa));
	OK(aclDestroyBoolArray(ba));
	OK(aclDestroyIntArray(empty));
	CHECK(!aclCreateScalar(&f, 5));
	violations(2);
	close_device(0);
}

CASE(first_phase_refuses) {
	static const float v[4] = {0};
	uint64_t bytes;
	void *ex;
	open_device(0);
	void *a = device_f32(v, 4), *t = vec(a, 4), *short_one = vec(a, 3), *alpha = scalar(1);
	WANT(161001, aclnnAddGetWorkspaceSize(NULL, t, alpha, t, &bytes, &ex));
	WANT(161002, aclnnAddGetWorkspaceSize(t, short_one, alpha, t, &bytes, &ex));
	CHECK(strstr(aclGetRecentErrMsg(), "aclnnAdd"));
	WANT(161001, aclnnAddGetWorkspaceSize(t, t, alpha, t, NULL, &ex));
	OK(aclDestroyTensor(short_one));
	WANT(161002, aclnnAddGetWorkspaceSize(t, short_one, alpha, t, &bytes, &ex)); // it is gone
	WANT(161002, aclnnAddGetWorkspaceSize(t, alpha, alpha, t, &bytes, &ex));     // a scalar is no tensor
	violations(2);
}

static uint16_t overflowed(int mode) {
	uint16_t big[2] = {0x7bff, 0xfbff}, got[2];
	uint64_t bytes;
	void *a, *ex;
	OK(aclrtSetDeviceSatMode(mode));
	OK(aclrtMalloc(&a, 4, 0));
	OK(aclrtMemcpy(a, 4, big, 4, H2D));
	void *t = vec_of(a, 2, F16), *alpha = scalar(1);
	OK(aclnnAddGetWorkspaceSize(t, t, alpha, t, &bytes, &ex));
	void *ws = workspace(bytes);
	OK(aclnnAdd(ws, bytes, ex, NULL));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemcpy(got, 4, a, 4, D2H));
	CHECK(got[1] == (got[0] | 0x8000));
	return got[0];
}

CASE(saturation) {
	int32_t status[16];
	void *d;
	open_device(0);
	CHECK(overflowed(1) == 0x7c00); // infinity
	CHECK(overflowed(0) == 0x7bff); // 65504
	OK(aclrtMalloc(&d, 64, 0));
	OK(aclrtGetOverflowStatus(d, 64, NULL));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemcpy(status, 64, d, 64, D2H));
	CHECK(status[0] == 1);
	OK(aclrtResetOverflowStatus(NULL));
	OK(aclrtGetOverflowStatus(d, 64, NULL));
	OK(aclrtSynchronizeStream(NULL));
	OK(aclrtMemcpy(status, 64, d, 64, D2H));
	CHECK(status[0] == 0);
}
