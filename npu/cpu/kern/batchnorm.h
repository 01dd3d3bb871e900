// Batch normalisation: what does not depend on the instruction set.
//
// Note [items]: a tensor is cut into items, runs of consecutive rows of W neighbouring channels: W is C where channels are innermost, 16 in the
// blocked layout, 1 where each channel has its own planes. Items with the same channels form a group. How a tensor is cut depends on its shape
// only, each item's sums are kept apart, and they are merged in order: results do not depend on the number of threads or on timing.
#ifndef KERN_BATCHNORM_H
#define KERN_BATCHNORM_H
#include "kern.h"

enum { BN_RELU = 1, BN_ADD = 2, BN_SUM = 4 };

typedef struct {
	int64_t groups, items, width; // items per group; width is the channels per item
	int64_t segments, rows, cut;  // a group is segments runs of rows rows, each cut into pieces of cut rows
	int64_t pieces, c, m;         // pieces per segment; channels; values per channel
	int layout;
} bn_cut;

bn_cut bn_cut_of(const kern_cmd *c);

// bn_item says where item i of group g begins and how many rows it has.
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
	float *par[3]; // per channel: factors for the second pass
	void (*first)(const bn_pass *p, int64_t g, int64_t i);
	void (*merge)(const bn_pass *p, int64_t g, int64_t c0, int64_t c1); // channels c0…c1-1 of the group
	void (*second)(const bn_pass *p, int64_t g, int64_t i);
};

// bn_two_pass runs first over all items, merge, then second.
void bn_two_pass(bn_pass *p, int nthreads);
int64_t bn_workspace(const kern_cmd *c);

// Merges for forward and backward.
void bn_merge_fwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1);
void bn_merge_bwd(const bn_pass *p, int64_t g, int64_t c0, int64_t c1);

#endif
