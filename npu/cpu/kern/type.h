// Names for code that is compiled for one instruction set and one element type E (C type EL). Included again after E has changed.
#undef FN
#undef LD1
#undef ST1
#undef LD
#undef ST
#undef SPAN
#undef LD2
#undef ST2
#undef PAST2
#define FN(name) CAT(CAT(name, _), ISA(E))
#define LD1 CAT(ld1_, ISA(E))
#define ST1 CAT(st1_, ISA(E))
// Loads and stores of n lanes; n, which must be in scope where they are used, is VL except for the last vector.
#define LD(p) (n == VL ? CAT(ld_, ISA(E))(p) : CAT(ldn_, ISA(E))(p, n))
#define ST(p, v) (n == VL ? CAT(st_, ISA(E))(p, v) : CAT(stn_, ISA(E))(p, v, n))
// Pairs of vectors, see vec.h.
#define LD2 CAT(ld2_, ISA(E))
#define ST2 CAT(st2_, ISA(E))
#define PAST2 CAT(past2_, ISA(E))
// SPAN runs BODY(R, n, i) over m elements, R vectors at a time.
#define SPAN(m, BODY)                                                           \
	do {                                                                        \
		int64_t i_ = 0;                                                         \
		for (; i_ + 4 * VL <= (m); i_ += 4 * VL) BODY(4, VL, i_);               \
		for (; i_ + VL <= (m); i_ += VL) BODY(1, VL, i_);                       \
		if (i_ < (m)) BODY(1, (int)((m)-i_), i_);                               \
	} while (0)
