// Compiles KERN_SRC once per instruction set: VL is the number of floats in a vector, ISA(name) the function's name in this build.
// KERN_SRC uses the compiler's vectors of native width, so it needs hardly any intrinsics, and every CPU can run the BASE build.
#include "kern.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline, unused))
#define UNROLL _Pragma("GCC unroll 8")
// The build of a kernel for the type of c's activations; see types.h.
#define PICK(name) (c->dt == KERN_BF16 ? CAT(CAT(name, _), ISA(bf16)) : CAT(CAT(name, _), ISA(f32)))

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TABLE(name) kern_table kern_##name = {CAT(name, _base), CAT(name, _v3), CAT(name, _v4)}
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,f16c,lzcnt,movbe,popcnt,prefer-vector-width=512")
#define VL 16
#define ISA(name) CAT(name, _v4)
#include "vec.h"
#include KERN_SRC
#undef VL
#undef ISA
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2,f16c,lzcnt,movbe,popcnt")
#define VL 8
#define ISA(name) CAT(name, _v3)
#include "vec.h"
#include KERN_SRC
#undef VL
#undef ISA
#pragma GCC pop_options

#else
#ifdef __SSE2__
#include <immintrin.h>
#endif
#define TABLE(name) kern_table kern_##name = {CAT(name, _base), CAT(name, _base), CAT(name, _base)}
#endif

#define VL 4
#define ISA(name) CAT(name, _base)
#include "vec.h"
#include KERN_SRC
