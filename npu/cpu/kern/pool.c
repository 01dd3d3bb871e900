#define KERN_SRC "pool.inc"
#include "isa.h"

TABLE(gap);
TABLE(gap_bwd);
