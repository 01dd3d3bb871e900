// driver.c: calls operators for the Go test, without the runtime. It reads one call after the other from standard input:
//
//	call NAME SOC CANN DETERMINISTIC SEED
//	tensor DTYPE FORMAT OFFSET STORAGE ALIAS ND dims… strides… hex     (ALIAS: the number of an earlier tensor with the same memory, -1: none,
//	        -2: a matrix of bytes with 1 above the diagonal, without hex here or in the answer)
//	T n | N | S dtype f i | I n v… | F n v… | B n v… | L n t… | s text | i v | f v    (one line per argument)
//	end
//
// and answers "rc CODE text"; after 0 also "run CODE INDICES-OUT-OF-RANGE", and a line of hex per tensor.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct {
	const char *name;
	const fop *op;
} driver_ops[];

enum { TENSORS = 256 };
static ft tensor[TENSORS];
static int64_t bytes[TENSORS];
static int alias[TENSORS], tensors;

static int64_t number(void) {
	long long v;
	if (scanf("%lld", &v) != 1) exit(3);
	return v;
}

static double real(void) {
	double v;
	if (scanf("%lf", &v) != 1) exit(3);
	return v;
}

static void read_tensor(void) {
	ft *t = tensor + tensors;
	*t = (ft){.dtype = (int)number(), .format = (int)number()};
	t->offset = number();
	t->storage = number();
	alias[tensors] = (int)number();
	t->nd = (int)number();
	for (int i = 0; i < t->nd; i++) t->dims[i] = number();
	for (int i = 0; i < t->nd; i++) t->strides[i] = number();
	bytes[tensors] = t->storage * dtype_size(t->dtype);
	if (alias[tensors] >= 0) {
		t->base = tensor[alias[tensors]].base;
	} else if (alias[tensors] == -2) {
		t->base = malloc((size_t)bytes[tensors] + 1);
		for (int64_t i = 0; i < bytes[tensors]; i++) t->base[i] = i % t->dims[1] > i / t->dims[1];
	} else {
		t->base = malloc((size_t)bytes[tensors] + 1); // exact but for one byte: the sanitizer sees what lies beyond
		for (int64_t i = 0; i < bytes[tensors]; i++) {
			unsigned v;
			if (scanf("%2x", &v) != 1) exit(3);
			t->base[i] = (char)v;
		}
	}
	tensors++;
}

static farray *read_array(char kind) {
	farray *a = calloc(1, sizeof *a);
	a->n = number();
	int64_t *i = calloc((size_t)a->n + 1, sizeof *i);
	float *f = calloc((size_t)a->n + 1, sizeof *f);
	bool *b = calloc((size_t)a->n + 1, sizeof *b);
	for (int64_t k = 0; k < a->n; k++) {
		double v = real();
		i[k] = (int64_t)v, f[k] = (float)v, b[k] = v != 0;
	}
	if (kind == 'I') a->i = i;
	if (kind == 'F') a->f = f;
	if (kind == 'B') a->b = b;
	return a;
}

static farg read_arg(const char *kind) {
	farg a = {.t = NULL};
	if (!strcmp(kind, "T")) {
		a.t = tensor + number();
	} else if (!strcmp(kind, "S")) {
		fscalar *s = calloc(1, sizeof *s);
		s->dtype = (int)number();
		s->f = real();
		s->i = number();
		a.s = s;
	} else if (strchr("IFB", *kind)) {
		a.a = read_array(*kind);
	} else if (!strcmp(kind, "L")) {
		flist *l = calloc(1, sizeof *l);
		l->n = number();
		l->t = calloc((size_t)l->n + 1, sizeof *l->t);
		for (int64_t k = 0; k < l->n; k++) {
			int64_t t = number();
			l->t[k] = t < 0 ? NULL : tensor + t;
		}
		a.l = l;
	} else if (!strcmp(kind, "s")) {
		char text[64];
		if (scanf("%63s", text) != 1) exit(3);
		a.str = strdup(text);
	} else if (!strcmp(kind, "i")) {
		a.i = number();
	} else if (!strcmp(kind, "f")) {
		a.f = real();
	}
	return a;
}

static void answer(fcall *c) {
	char err[1024] = "";
	int code = c->op ? (c->op->check ? c->op->check(c, err, sizeof err) : 0) : ACLNN_NO_KERNEL;
	printf("rc %d %s\n", code, err);
	if (!code) {
		int64_t n = c->op->workspace ? c->op->workspace(c) : 0;
		c->ws = n ? malloc((size_t)n) : NULL;
		c->ws_bytes = n;
		fake_out_of_range = 0;
		int result = c->op->run(c);
		printf("run %d %lld\n", result, (long long)fake_out_of_range);
		free(c->ws);
		for (int i = 0; i < tensors; i++) {
			for (int64_t k = 0; k < bytes[i] && alias[i] != -2; k++) printf("%02x", (unsigned char)tensor[i].base[k]);
			printf("\n");
		}
	}
	fflush(stdout);
	for (int i = 0; i < tensors; i++) {
		if (alias[i] < 0) free(tensor[i].base);
	}
	tensors = 0;
}

int main(void) {
	char word[64];
	fcall c = {0};
	while (scanf("%63s", word) == 1) {
		if (!strcmp(word, "call")) {
			if (scanf("%63s", word) != 1) return 3;
			c = (fcall){.name = strdup(word)};
			c.soc = (int)number(), c.cann = (int)number(), c.deterministic = number() != 0, c.seed = (uint64_t)number();
			for (int i = 0; driver_ops[i].name; i++) {
				if (!strcmp(driver_ops[i].name, word)) c.op = driver_ops[i].op;
			}
		} else if (!strcmp(word, "tensor")) {
			read_tensor();
		} else if (!strcmp(word, "end")) {
			answer(&c);
		} else {
			c.a[c.n++] = read_arg(word);
		}
	}
	return 0;
}
