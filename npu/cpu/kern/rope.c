//go:build cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#define KERN_SRC "rope.per_isa.h"
#include "kern.h"
#include <math.h>
enum { ROPE_MAX_HEAD = 1024 };

// The row for position p: from the table, or computed in room. n[3] is the width of a head, n[4] the number of positions in the table.
static const float *rope_row(const kern_cmd *c, int64_t p, float *room) {
	int64_t half = c->n[3] / 2;
	int adjacent = c->flags & ROPE_ADJACENT;
	if (p >= 0 && p < c->n[4]) return (const float *)c->p[KERN_ARGS - 1] + p * (adjacent ? 4 : 2) * half;
	const double *f = (const double *)c->v;
	for (int64_t i = 0; i < half; i++) {
		double sn, cs;
		sincos((double)p * f[i], &sn, &cs);
		if (adjacent) {
			room[2 * i] = room[2 * i + 1] = (float)cs;
			room[2 * half + 2 * i] = -(float)sn, room[2 * half + 2 * i + 1] = (float)sn;
		} else
			room[i] = (float)cs, room[half + i] = (float)sn;
	}
	return room;
}
#include "isa.h"

TABLE(rope);
