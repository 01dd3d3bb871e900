#define KERN_SRC "dropout_isa.h"
#include "isa.h"

TABLE(dropout);
