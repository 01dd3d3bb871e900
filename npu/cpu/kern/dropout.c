#define KERN_SRC "dropout.inc"
#include "isa.h"

TABLE(dropout);
