// The Huffman decoder, and the loop over MCUs.

#undef bits_t
#define bits_t ISA(bl_bits)
// The next bits of the data: of buf, the upper n are valid.
typedef struct {
	uint64_t buf;
	int n;
	const uint8_t *p;
} bits_t;

// At least 56 bits are valid afterwards.
INLINE bits_t ISA(refill)(bits_t b) {
	uint64_t v;
	memcpy(&v, b.p, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	b.buf |= v >> b.n;
	b.p += (63 - b.n) >> 3;
	b.n |= 56;
	return b;
}

INLINE bits_t ISA(drop)(bits_t b, int n) {
	b.buf <<= n;
	b.n -= n;
	return b;
}

INLINE int ISA(extend)(uint64_t buf, int size) {
	if (size == 0) return 0;
	int v = (int)(buf >> (64 - size));
	return v < (1 << (size - 1)) ? v - (1 << size) + 1 : v;
}

// What the table does not hold: value<<16 | advance<<8 | length, like its entries, but the length may be up to 31 bits; advance and length are 0 if there is
// no such code. The bits are passed by value, so that the caller's stay in registers.
static __attribute__((noinline)) int32_t ISA(longer)(uint64_t buf, const bl_huffman *t, int32_t e, int ac) {
	int size = e >> 16, advance = (e >> 8) & 255, n = e & 31;
	if (n == 0) {
		int32_t c = (int32_t)(buf >> 48);
		for (n = BL_FAST + 1; n <= 16 && c >= t->limit[n]; n++) {}
		if (n > 16) return 0;
		int sym = t->syms[((c >> (16 - n)) + t->shift[n]) & 255];
		size = sym & 15;
		advance = !ac ? 1 : size || sym >> 4 == 15 ? (sym >> 4) + 1 : 128;
	}
	return (int32_t)((uint32_t)ISA(extend)(buf << n, size) << 16) | advance << 8 | (n + size);
}

// The difference of the first coefficient; *bad is set if there is no such code.
INLINE bits_t ISA(dc)(bits_t b, const bl_huffman *t, int *value, int *bad) {
	b = ISA(refill)(b);
	int32_t e = t->fast[b.buf >> (64 - BL_FAST)];
	if (__builtin_expect(e & 0x80, 0)) {
		e = ISA(longer)(b.buf, t, e, 0);
		*bad |= e == 0;
	}
	*value = e >> 16;
	return ISA(drop)(b, e & 31);
}

// The other coefficients, into a block of zeros. *end is the place behind the last one: 64, more than 128 where a code said that no more come, and else
// the data are damaged.
INLINE bits_t ISA(ac)(bits_t b, const bl_huffman *t, int16_t *block, int *end) {
	int k = 1;
	do {
		b = ISA(refill)(b);
		// After two codes that fit the table, 34 of 56 bits are left: enough for any third one.
		UNROLL for (int i = 0; i < 3; i++) {
			int32_t e = t->fast[b.buf >> (64 - BL_FAST)];
			int long_ = e & 0x80;
			if (__builtin_expect(long_, 0)) e = ISA(longer)(b.buf, t, e, 1);
			b = ISA(drop)(b, e & 31);
			k += (e >> 8) & 255;
			if (__builtin_expect(e == 0, 0)) k = 65;
			if (k > 64) goto out;
			block[bl_zigzag[k - 1]] = (int16_t)(e >> 16);
			if (long_ || k == 64) break;
		}
	} while (k < 64);
out:
	*end = k;
	return b;
}

// The same without storing anything.
INLINE bits_t ISA(skip)(bits_t b, const bl_huffman *t, int *end) {
	int k = 1;
	do {
		b = ISA(refill)(b);
		UNROLL for (int i = 0; i < 3; i++) {
			uint64_t at = b.buf >> (64 - BL_FAST);
			int s = t->skip[at];
			// Several codes at once only where they end before the block does.
			if (__builtin_expect(s && k + ((s >> 8) & 127) < 64, 1)) {
				b = ISA(drop)(b, s & 31);
				k += s >> 8;
				if (k >= 64) break;
				continue;
			}
			int32_t e = t->fast[at];
			int long_ = e & 0x80;
			if (long_) e = ISA(longer)(b.buf, t, e, 1);
			if (e == 0) {
				*end = 65;
				return b;
			}
			b = ISA(drop)(b, e & 31);
			k += (e >> 8) & 255;
			if (long_ || k >= 64) break;
		}
	} while (k < 64);
	*end = k;
	return b;
}

INLINE void ISA(zeros)(int16_t *block) {
	for (int i = 0; i < 64; i += 8) *(ISA(bl_h) *)(block + i) = (ISA(bl_h)){};
}

// Blocks of an MCU wait here until all of it has been read: a vector that is loaded right after its parts were stored is late.
typedef struct {
	_Alignas(32) int16_t coef[64];
	uint8_t *dst;
	int c, dense;
} ISA(bl_block);

static int ISA(mcus)(const bl_job *j, const bl_huffman *dct, const bl_huffman *act, const uint8_t *src, size_t n, int64_t first, int64_t last, int whole,
                     uint8_t *planes) {
	bits_t b = {0, 0, src};
	int pred[3] = {0, 0, 0}, bad = 0;
	int64_t across = (j->w + 8 * j->hs - 1) / (8 * j->hs), total = (int64_t)n * 8;
	int64_t my = first / across, mx = first % across;
	ISA(bl_block) blocks[6];
	for (int64_t m = first; m < last; m++) {
		ISA(bl_block) *next = blocks;
		for (int c = 0; c < j->comps; c++) {
			const bl_huffman *dc = dct + j->dc[c], *ac = act + j->ac[c];
			int hs = c == 0 ? j->hs : 1, vs = c == 0 ? j->vs : 1;
			int32_t col0 = j->c[c].col0, col1 = j->c[c].col1, row0 = j->c[c].row0, row1 = j->c[c].row1;
			ptrdiff_t stride = (ptrdiff_t)(col1 - col0) * 8;
			for (int y = 0; y < vs; y++) {
				int64_t row = my * vs + y;
				for (int x = 0; x < hs; x++) {
					int64_t col = mx * hs + x;
					int diff, end;
					b = ISA(dc)(b, dc, &diff, &bad);
					pred[c] = (int)((unsigned)pred[c] + (unsigned)diff);
					if (row < row0 || row >= row1 || col < col0 || col >= col1) {
						b = ISA(skip)(b, ac, &end);
					} else {
						ISA(zeros)(next->coef);
						b = ISA(ac)(b, ac, next->coef, &end);
						next->coef[0] = (int16_t)pred[c];
						next->dst = planes + j->c[c].at + (row - row0) * 8 * stride + (col - col0) * 8;
						next->c = c;
						next->dense = end != 1 + 128;
						next++;
					}
					bad |= end > 64 && end < 128; // beyond the block
				}
			}
		}
		if (bad || (b.p - src) * 8 - b.n > total) return -1;
		for (ISA(bl_block) *k = blocks; k < next; k++) {
			ptrdiff_t stride = (ptrdiff_t)(j->c[k->c].col1 - j->c[k->c].col0) * 8;
			if (k->dense)
				ISA(idct)(k->coef, j->quant[k->c], k->dst, stride);
			else
				ISA(flat)(k->coef[0] * j->quant[k->c][0], k->dst, stride);
		}
		if (++mx == across) mx = 0, my++;
	}
	// What is left fills the last byte.
	return whole && total - ((b.p - src) * 8 - b.n) >= 8 ? -1 : 0;
}
