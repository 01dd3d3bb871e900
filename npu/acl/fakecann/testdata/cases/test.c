#include "test.h"

test_case *cases;
static long long expected;

long long stat(const char *name) {
	static char text[1 << 18];
	char key[64];
	fakeStats(text, sizeof text);
	snprintf(key, sizeof key, "\"%s\": ", name);
	char *p = strstr(text, key);
	return p ? atoll(p + strlen(key)) : 0;
}

void violations(long long n) { expected = n; }

void open_device(int device) {
	int32_t code = aclInit(NULL);
	CHECK(code == 0 || code == 100002);
	OK(aclrtSetDevice(device));
	OK(aclrtSetDeviceSatMode(1));
}

void close_device(int device) {
	OK(aclrtResetDevice(device));
	static const char *const left[] = {"device_blocks", "host_blocks", "streams", "events", "leaked_executors", "tensors", "scalars", "arrays", "lists",
		"comms"};
	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		if (stat(left[i])) {
			fprintf(stderr, "%lld %s are left\n", stat(left[i]), left[i]);
			exit(1);
		}
	}
	OK(aclFinalize());
}

void *device_f32(const float *v, int n) {
	void *p;
	OK(aclrtMalloc(&p, (uint64_t)n * 4, 0));
	OK(aclrtMemcpy(p, (uint64_t)n * 4, (void *)(uintptr_t)v, (uint64_t)n * 4, H2D));
	return p;
}

void read_f32(float *to, void *from, int n) { OK(aclrtMemcpy(to, (uint64_t)n * 4, from, (uint64_t)n * 4, D2H)); }

void *vec_of(void *base, int64_t n, int dtype) {
	void *t = aclCreateTensor(&n, 1, dtype, NULL, 0, 2, &n, 1, base);
	CHECK(t);
	return t;
}

void *vec(void *base, int64_t n) { return vec_of(base, n, F32); }

void *scalar(float v) {
	void *s = aclCreateScalar(&v, F32);
	CHECK(s);
	return s;
}

void pause_ms(int ms) {
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
	nanosleep(&t, NULL);
}

void *workspace(uint64_t bytes) {
	void *p = NULL;
	if (bytes) OK(aclrtMalloc(&p, bytes, 0));
	return p;
}

int main(int argc, char **argv) {
	for (test_case *c = cases; c; c = c->next) {
		if (argc < 2) {
			puts(c->name);
		} else if (strcmp(argv[1], c->name) == 0) {
			c->run();
			if (stat("violations") != expected) {
				fprintf(stderr, "%lld violations, want %lld\n", stat("violations"), expected);
				return 1;
			}
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
