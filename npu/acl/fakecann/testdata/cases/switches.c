// Switches, injection, capabilities, callbacks, graphs.
#include "test.h"

CASE(injection) {
	void *p, *q;
	open_device(0);
	CHECK(fakeSet("FAKE_CANN_INJECT", "aclrtMalloc:2:207001,aclrtFree:*:507899"));
	OK(aclrtMalloc(&p, 64, 0));
	WANT(207001, aclrtMalloc(&q, 64, 0));
	CHECK(strstr(aclGetRecentErrMsg(), "injected"));
	OK(aclrtMalloc(&q, 64, 0));
	WANT(507899, aclrtFree(p));
	WANT(507899, aclrtFree(p));
	CHECK(stat("injected") == 3);
	CHECK(!fakeSet("FAKE_CANN_INJECT", "nonsense:1:1") && !fakeSet("FAKE_CANN_NONSENSE", "1"));
	CHECK(fakeSet("FAKE_CANN_INJECT", ""));
	CHECK(stat("aclrtMalloc") == 3);
	OK(aclrtFree(p));
	OK(aclrtFree(q));
	close_device(0);
}

CASE(late_injection) {
	void *p;
	open_device(0);
	OK(aclrtMalloc(&p, 64, 0));
	CHECK(fakeSet("FAKE_CANN_INJECT", "aclrtMemsetAsync:1:507014@"));
	OK(aclrtMemsetAsync(p, 64, 0, 64, NULL));
	WANT(507014, aclrtSynchronizeStream(NULL));
	WANT(507014, aclrtMalloc(&p, 64, 0));
}

CASE(inline_tasks) {
	void *p, *s, *e;
	int32_t status;
	CHECK(fakeSet("FAKE_CANN_INLINE", "1"));
	open_device(0);
	OK(aclrtCreateStream(&s));
	OK(aclrtCreateEventExWithFlag(&e, 9));
	OK(aclrtMalloc(&p, 64, 0));
	CHECK(fakeSet("FAKE_CANN_DELAY", "memset:20"));
	OK(aclrtMemsetAsync(p, 64, 0, 64, s));
	OK(aclrtRecordEvent(e, s));
	OK(aclrtQueryEventStatus(e, &status));
	CHECK(status == 1);
	OK(aclrtStreamQuery(s, &status));
	CHECK(status == 0);
	OK(aclrtDestroyEvent(e));
	OK(aclrtDestroyStream(s));
	OK(aclrtFree(p));
	close_device(0);
}

CASE(capabilities) {
	int32_t v, major, minor, patch;
	int64_t cores;
	struct {
		int32_t cube, vector, cpu, memory;
		void *ext;
	} u;
	open_device(0);
	OK(aclGetCannAttribute(1, &v));
	CHECK(v == 1);
	OK(aclGetCannAttribute(0, &v));
	CHECK(v == 1);
	OK(aclrtGetVersion(&major, &minor, &patch));
	CHECK(major == 1 && minor == 16);
	OK(aclGetDeviceCapability(0, 0, &cores));
	CHECK(cores == 20);
	CHECK(fakeSet("FAKE_CANN_UTIL", "61"));
	OK(aclrtGetDeviceUtilizationRate(0, &u));
	CHECK(u.cube == 61 && u.cpu == -1);
	OK(aclrtQueryDeviceStatus(0, &v));
	CHECK(v == 0);
	OK(aclrtGetRunMode(&v));
	CHECK(v == 1);
	CHECK(aclDataTypeSize(BF16) == 2 && aclDataTypeSize(5) == 0);
	CHECK(fakeSet("FAKE_CANN_INFNAN", "0"));
	WANT(207000, aclrtSetDeviceSatMode(1));
	OK(aclGetCannAttribute(0, &v));
	CHECK(v == 0);
	CHECK(fakeSet("FAKE_CANN_SOC", "910"));
	OK(aclGetCannAttribute(1, &v));
	CHECK(v == 0);
	CHECK(fakeSet("FAKE_CANN_SOC", "Ascend910B"));
	OK(aclGetCannAttribute(1, &v));
	CHECK(v == 0); // without a digit: the first generation
	CHECK(fakeSet("FAKE_CANN_SOC", "Ascend910B4"));
	OK(aclGetCannAttribute(1, &v));
	CHECK(v == 1 && strcmp(aclrtGetSocName(), "Ascend910B4") == 0);
	WANT(107000, aclGetDeviceCapability(0, 9, &cores));
	CHECK(aclrtPeekAtLastError(0) == 107000 && aclrtGetLastError(0) == 107000 && aclrtGetLastError(0) == 0);
	close_device(0);
}

CASE(visible_devices) {
	uint32_t n;
	OK(aclInit(NULL));
	setenv("ASCEND_RT_VISIBLE_DEVICES", "1,3,2", 1);
	OK(aclrtGetDeviceCount(&n));
	CHECK(n == 2); // reading stops at what does not ascend
	setenv("ASCEND_RT_VISIBLE_DEVICES", "9", 1);
	WANT(207004, aclrtGetDeviceCount(&n));
}

static int calls;

static void callback(void *user) { calls += *(int *)user; }

CASE(callbacks) {
	int by = 3;
	void *s;
	void (*fn)(void *) = callback;
	void *p;
	memcpy(&p, &fn, sizeof p);
	open_device(0);
	OK(aclrtCreateStream(&s));
	OK(aclrtSubscribeReport((uint64_t)pthread_self(), s));
	OK(aclrtLaunchCallback(p, &by, 1, s));
	OK(aclrtProcessReport(1000));
	OK(aclrtSynchronizeStream(s));
	CHECK(calls == 3);
	WANT(107019, aclrtProcessReport(5));
	OK(aclrtUnSubscribeReport((uint64_t)pthread_self(), s));
	OK(aclrtLaunchCallback(p, &by, 1, s));
	WANT(107000, aclrtSynchronizeStream(s)); // nobody would run it
	OK(aclrtDestroyStream(s));
	violations(1);
	close_device(0);
}

CASE(graphs) {
	float *host, got[4];
	void *a, *b, *e, *f, *d, *model;
	open_device(0);
	OK(aclrtCreateStream(&a));
	OK(aclrtCreateStream(&b));
	OK(aclrtCreateEventExWithFlag(&e, 1));
	OK(aclrtCreateEventExWithFlag(&f, 1));
	OK(aclrtMalloc(&d, 32, 0));
	OK(aclrtMallocHost((void **)&host, 16));
	OK(aclrtMemset(d, 32, 0, 32));
	for (int i = 0; i < 4; i++) host[i] = 1;
	WANT(107000, aclmdlRICaptureBegin(NULL, 0));
	OK(aclmdlRICaptureBegin(a, 0));
	OK(aclrtMemcpyAsync(d, 16, host, 16, H2D, a));
	OK(aclrtRecordEvent(e, a));
	OK(aclrtStreamWaitEvent(b, e)); // joins
	OK(aclrtMemcpyAsync((char *)d + 16, 16, d, 16, D2D, b));
	OK(aclrtRecordEvent(f, b));
	OK(aclrtStreamWaitEvent(a, f));
	WANT(107000, aclrtSynchronizeStream(a));
	OK(aclmdlRICaptureEnd(a, &model));
	OK(aclrtSynchronizeStream(a));
	read_f32(got, d, 4);
	CHECK(got[0] == 0); // nothing ran
	for (int run = 1; run < 3; run++) {
		for (int i = 0; i < 4; i++) host[i] = (float)run;
		OK(aclmdlRIExecuteAsync(model, b));
		OK(aclrtSynchronizeStream(b));
		read_f32(got, (char *)d + 16, 4);
		CHECK(got[3] == (float)run);
	}
	OK(aclmdlRIDestroy(model));
	WANT(107017, aclmdlRIDestroy(model));
	violations(3);
	OK(aclrtDestroyEvent(e));
	OK(aclrtDestroyEvent(f));
	OK(aclrtDestroyStream(a));
	OK(aclrtDestroyStream(b));
	OK(aclrtFree(d));
	OK(aclrtFreeHost(host));
	close_device(0);
}

CASE(dcmi) {
	int n, list[64], v;
	unsigned u;
	struct {
		char type[32], name[32], ver[32];
		unsigned cores;
	} chip;
	WANT(-8005, dcmi_get_card_list(&n, list, 64));
	CHECK(fakeSet("FAKE_CANN_DCMI", "-8020"));
	WANT(-8020, dcmi_init());
	CHECK(fakeSet("FAKE_CANN_DCMI", "0"));
	OK(dcmi_init());
	OK(dcmi_get_card_list(&n, list, 64));
	CHECK(n == 8 && list[7] == 7);
	OK(dcmi_get_device_chip_info(0, 0, &chip));
	CHECK(strcmp(chip.name, "910B3") == 0);
	OK(dcmi_get_device_utilization_rate(0, 0, 13, &u));
	CHECK(u == 37);
	WANT(-8255, dcmi_get_device_utilization_rate(0, 0, 99, &u));
	OK(dcmi_get_device_power_info(3, 0, &v));
	CHECK(v == 913);
	WANT(-8008, dcmi_get_device_temperature(8, 0, &v));
}
