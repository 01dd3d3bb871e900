// Includes TYPED, a file name, once per type of activations. Included by the .per_isa.h of an op family.
#define E f32
#define EL float
#include TYPED
#undef E
#undef EL
#define E bf16
#define EL uint16_t
#include TYPED
#undef E
#undef EL
#undef TYPED
