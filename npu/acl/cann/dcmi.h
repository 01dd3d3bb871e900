//go:build cgo && linux

#ifndef GT_DCMI_H
#define GT_DCMI_H

#include <stdint.h>

enum { GT_DCMI_CHIPS = 256 };

typedef struct {
    int card, chip, physical, health, temperature, power, load; // -1: not told; power in 0.1 W
    int64_t memory, used;                                       // MB
} gt_chip;

// gt_dcmi asks libdcmi, opened as h, about all chips. It returns the code of the first call that must succeed, whose name is then in call.
int gt_dcmi(void *h, gt_chip *chips, int *n, const char **call);

#endif
