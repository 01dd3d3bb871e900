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
