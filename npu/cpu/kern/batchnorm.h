// Batch normalisation: the part that does not depend on the instruction set.
//
// Note [items]: a tensor is cut into items, runs of consecutive rows of W adjacent channels: W is C where channels are innermost, the width of a block in
// a blocked layout, 1 where each channel has separate planes. Items with the same channels form a group. How a tensor is cut depends on its shape
// only; each item's sums are kept separate and merged in order, so results do not depend on the number of threads or on timing.
#ifndef KERN_BATCHNORM_H
#define KERN_BATCHNORM_H
#include "kern.h"

// BN_OWN: y is the forward kernel's relu of the same x, so its sign is known from x.
enum { BN_RELU = 1, BN_ADD = 2, BN_SUM = 4, BN_OWN = 8 };

typedef struct {
	int64_t groups, items, width; // items per group; width is the channels per item
	int64_t segments, rows, cut;  // a group is segments runs of rows rows, each cut into pieces of cut rows
	int64_t pieces, c, m;         // pieces per segment; channels; values per channel
	int layout;
} bn_cut;

bn_cut bn_cut_of(const kern_cmd *c);

// bn_item finds where item i of group g begins and how many rows it has.
static inline int64_t bn_item(const bn_cut *t, int64_t g, int64_t i, int64_t *rows) {
	int64_t seg = i / t->pieces, row = i % t->pieces * t->cut;
	*rows = t->rows - row < t->cut ? t->rows - row : t->cut;
	return ((seg * t->groups + g) * t->rows + row) * t->width;
}

// Sums of item i of group g: two vectors of width floats.
static inline float *bn_sums(const bn_cut *t, float *sums, int64_t g, int64_t i) { return sums + (g * t->items + i) * 2 * t->width; }

// A pass works on one item.
typedef struct bn_pass bn_pass;
struct bn_pass {
	bn_cut t;
	kern_cmd *cmd;
	float *sums;
	int past;      // the second pass writes past the caches, see Note [past]
	float *par[5]; // per channel: factors for the second pass; the last two for BN_OWN
	void (*first)(const bn_pass *p, int64_t g, int64_t i);
	void (*merge)(const bn_pass *p, int64_t g, int64_t c0, int64_t c1); // channels c0…c1-1 of the group
	void (*second)(const bn_pass *p, int64_t g, int64_t i);
};

// An item's data in backward, and the parameters of its first channel.
typedef struct {
	const void *dy, *dy2, *x, *y;
	void *dx, *dres;
	const float *mean, *ma, *mb;
} bn_place;

// Arguments of backward: dy, x, gamma, beta, mean, rstd, y, dy2, dx, dgamma, dbeta, dres.
static inline bn_place bn_place_of(const bn_pass *p, int64_t g, int64_t i, int64_t size, int64_t *rows) {
	int64_t at = bn_item(&p->t, g, i, rows) * size, ch = g * p->t.width;
	char *const *v = (char *const *)p->cmd->p;
	// Absent arguments give addresses that are never used.
	return (bn_place){.dy = v[0] + at, .x = v[1] + at, .y = v[6] + at, .dy2 = v[7] + at, .dx = v[8] + at, .dres = v[11] + at,
	                  .mean = (const float *)v[4] + ch, .ma = p->par[3] + ch, .mb = p->par[4] + ch};
}

enum { MASK_NONE, MASK_Y, MASK_X };
static inline int bn_mask(int flags) { return flags & BN_OWN ? MASK_X : flags & BN_RELU ? MASK_Y : MASK_NONE; }

// From how many bytes on forward writes past the caches; tests change it.
extern int64_t kern_bn_past;

// bn_two_pass runs first over all items, merge, then second.
void bn_two_pass(bn_pass *p, int nthreads);
int64_t bn_workspace(const kern_cmd *c);

// Merge functions for forward and backward.
void bn_merge_fwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1);
void bn_merge_bwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1);

// The factors of normalisation, x*a + b, of one channel. Forward and backward must agree on them to the last bit (BN_OWN), so both start from the stored
// mean and rstd.
static inline void bn_factors(float gamma, float beta, float mean, float rstd, float *a, float *b) {
	double k = (double)gamma * rstd;
	*a = (float)k;
	*b = (float)(beta - mean * k);
}

#endif
