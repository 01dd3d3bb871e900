#include "fake.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(int code, char *err, size_t n, const char *format, ...) {
	va_list l;
	va_start(l, format);
	vsnprintf(err, n, format, l);
	va_end(l);
	return code;
}

int64_t ft_numel(const ft *t) {
	int64_t n = 1;
	for (int i = 0; i < t->nd; i++) n *= t->dims[i];
	return n;
}

bool ft_contiguous(const ft *t) {
	int64_t want = 1;
	for (int i = t->nd - 1; i >= 0; i--) {
		if (t->dims[i] != 1 && t->strides[i] != want) return false;
		want *= t->dims[i];
	}
	return true;
}

bool ft_same_shape(const ft *a, const ft *b) {
	if (a->nd != b->nd) return false;
	for (int i = 0; i < a->nd; i++) {
		if (a->dims[i] != b->dims[i]) return false;
	}
	return true;
}

int64_t ft_at(const ft *t, int64_t flat) {
	int64_t at = t->offset;
	for (int i = t->nd - 1; i >= 0; i--) {
		at += flat % t->dims[i] * t->strides[i];
		flat /= t->dims[i];
	}
	return at;
}

static const struct {
	int dtype, size;
	const char *name;
} dtypes[] = {
	{DT_F32, 4, "FLOAT"},  {DT_F16, 2, "FLOAT16"},  {DT_I8, 1, "INT8"},    {DT_I32, 4, "INT32"},   {DT_U8, 1, "UINT8"},   {DT_I16, 2, "INT16"},    {DT_U16, 2,
		"UINT16"},
	{DT_U32, 4, "UINT32"}, {DT_I64, 8, "INT64"},    {DT_U64, 8, "UINT64"}, {DT_F64, 8, "DOUBLE"},  {DT_BOOL, 1, "BOOL"},  {DT_BF16, 2, "BFLOAT16"},
};

int64_t dtype_size(int dtype) {
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		if (dtypes[i].dtype == dtype) return dtypes[i].size;
	}
	return 0;
}

const char *dtype_name(int dtype) {
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		if (dtypes[i].dtype == dtype) return dtypes[i].name;
	}
	return "DT_UNDEFINED";
}

float bf16_to_float(uint16_t h) {
	uint32_t u = (uint32_t)h << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

uint16_t float_to_bf16(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40); // NaN stays NaN
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float half_to_float(uint16_t h) {
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, man = h & 1023, u;
	float f;
	if (exp == 31) {
		u = sign | 0x7f800000 | man << 13;
	} else if (exp) {
		u = sign | (exp + 112) << 23 | man << 13;
	} else {
		f = ldexpf((float)man, -24);
		return sign ? -f : f;
	}
	memcpy(&f, &u, 4);
	return f;
}

uint16_t float_to_half(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
	u &= 0x7fffffff;
	if (u > 0x7f800000) return sign | 0x7e00;
	if (u >= 0x477ff000) return sign | 0x7c00; // 65520 and above round to infinity
	if (u < 0x38800000) {                      // subnormal: the addition rounds to a multiple of 2^-24
		float a;
		memcpy(&a, &u, 4);
		return (uint16_t)(sign | (uint16_t)lrintf(a * 16777216.0f));
	}
	u += 0xfff + (u >> 13 & 1);
	return (uint16_t)(sign | (u - 0x38000000) >> 13);
}

double value_load(const char *base, int dtype, int64_t i) {
	switch (dtype) {
	case DT_F32: return ((const float *)base)[i];
	case DT_F16: return half_to_float(((const uint16_t *)base)[i]);
	case DT_BF16: return bf16_to_float(((const uint16_t *)base)[i]);
	case DT_F64: return ((const double *)base)[i];
	case DT_I8: return ((const int8_t *)base)[i];
	case DT_I16: return ((const int16_t *)base)[i];
	case DT_U16: return ((const uint16_t *)base)[i];
	case DT_I32: return ((const int32_t *)base)[i];
	case DT_U32: return ((const uint32_t *)base)[i];
	case DT_I64: return (double)((const int64_t *)base)[i];
	case DT_U64: return (double)((const uint64_t *)base)[i];
	case DT_BOOL: return ((const uint8_t *)base)[i] != 0;
	default: return ((const uint8_t *)base)[i];
	}
}

// round16 rounds to f32 in a way that a second rounding to 16 bits gives what one rounding would: to odd.
static float round16(double v) {
	float f = (float)v;
	if ((double)f == v || isnan(v) || isinf(f)) return f;
	uint32_t u;
	memcpy(&u, &f, 4);
	if (fabs((double)f) > fabs(v)) u--; // towards zero
	u |= 1;
	memcpy(&f, &u, 4);
	return f;
}

// whole cuts off, and saturates where C leaves the result open.
static int64_t whole(double v, double min, double max) {
	if (isnan(v)) return 0;
	if (v <= min) return (int64_t)min;
	if (v >= max) return max >= 9223372036854775807.0 ? INT64_MAX : (int64_t)max;
	return (int64_t)v;
}

void value_store(char *base, int dtype, int64_t i, double v) {
	switch (dtype) {
	case DT_F32: ((float *)base)[i] = (float)v; break;
	case DT_F16: ((uint16_t *)base)[i] = float_to_half(round16(v)); break;
	case DT_BF16: ((uint16_t *)base)[i] = float_to_bf16(round16(v)); break;
	case DT_F64: ((double *)base)[i] = v; break;
	case DT_I8: ((int8_t *)base)[i] = (int8_t)whole(v, -128, 127); break;
	case DT_I16: ((int16_t *)base)[i] = (int16_t)whole(v, -32768, 32767); break;
	case DT_U16: ((uint16_t *)base)[i] = (uint16_t)whole(v, 0, 65535); break;
	case DT_I32: ((int32_t *)base)[i] = (int32_t)whole(v, -2147483648.0, 2147483647.0); break;
	case DT_U32: ((uint32_t *)base)[i] = (uint32_t)whole(v, 0, 4294967295.0); break;
	case DT_I64: ((int64_t *)base)[i] = whole(v, -9223372036854775808.0, 9223372036854775807.0); break;
	case DT_U64: ((uint64_t *)base)[i] = v >= 9223372036854775808.0 ? (uint64_t)v : (uint64_t)whole(v, 0, 9223372036854775807.0); break;
	case DT_BOOL: ((uint8_t *)base)[i] = v != 0; break;
	default: ((uint8_t *)base)[i] = (uint8_t)whole(v, 0, 255); break;
	}
}

uint64_t fake_random(uint64_t *state) {
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}
