// Flags of commands, by kernel, for C and Go; those of attention and batch normalisation are in their own headers.
#ifndef KERN_FLAGS_H
#define KERN_FLAGS_H

enum { ADD_RELU = 1 };
enum { FEW_BIAS = 1, FEW_OUT_F32 = 2 };
enum { SGD_NESTEROV = 1, SGD_DECOUPLED = 2, SGD_MOMENTUM = 4 };
enum { ADAM_COUPLED = 1 };
enum { LARS_SKIP = 1 };
enum { LAMB_CLIP = 1 };
enum { ROPE_ADJACENT = 1, ROPE_INVERSE = 2 };
enum { ROWS_LOG = 1 };
enum { GELU_TANH = 1 };

#endif
