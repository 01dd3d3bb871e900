// 16-bit floats one at a time, as half.go has them; for what does not fill a vector.
#ifndef GT_HALF_H
#define GT_HALF_H
#include <stdint.h>
#include <string.h>

static inline float from_f16(uint16_t v) {
	uint32_t sign = (uint32_t)(v & 0x8000) << 16, exp = v >> 10 & 31, frac = v & 1023, r;
	float f;
	if (exp == 31)
		r = frac ? sign | 0x7fc00000 | frac << 13 : sign | 0x7f800000;
	else if (exp == 0) {
		f = (float)frac * (1.0f / (1 << 24));
		memcpy(&r, &f, 4);
		r |= sign;
	} else
		r = sign | (exp + 112) << 23 | frac << 13;
	memcpy(&f, &r, 4);
	return f;
}

static inline uint16_t to_f16(float f) {
	uint32_t b;
	memcpy(&b, &f, 4);
	uint16_t sign = b >> 16 & 0x8000;
	b &= 0x7fffffff;
	if (b > 0x7f800000)
		return sign | 0x7e00 | (b >> 13 & 0x3ff);
	if (b >= 0x477ff000)
		return sign | 0x7c00;
	if (b < 0x38800000) {
		memcpy(&f, &b, 4);
		f += 0.5f;
		memcpy(&b, &f, 4);
		return sign | (uint16_t)(b - 0x3f000000);
	}
	return sign | (uint16_t)((b - (112u << 23) + 0xfff + (b >> 13 & 1)) >> 13);
}

#endif
