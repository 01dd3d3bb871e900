// Smooth interpolation of chroma, and conversion to RGB.

// A row of a component of half the width becomes the samples x0 … x1-1 of the full width. s has its samples (x0/2 - 1) … ((x1-1)/2 + 1), or sums of two
// rows; the nearer one counts 3/4, the other 1/4.
INLINE void ISA(spread)(const int16_t *s, int x0, int x1, int even, int odd, int shift, uint8_t *out) {
	int n = ((x1 - 1) >> 1) - (x0 >> 1) + 1;
	out -= x0 & 1; // there is room for a sample in front
	for (int i = 0; i < n; i++) {
		uint16_t near = (uint16_t)(3 * s[i + 1]);
		uint16_t l = (uint16_t)(near + s[i] + even), r = (uint16_t)(near + s[i + 2] + odd);
		uint16_t pair = (uint16_t)((l >> shift) | (uint16_t)((r >> shift) << 8));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		pair = (uint16_t)(pair >> 8 | pair << 8);
#endif
		memcpy(out + 2 * i, &pair, 2);
	}
}

// The samples of a component in the range from a to b (b excluded) of a row, repeated beyond its borders. near counts three times if far is not NULL.
INLINE void ISA(weighted)(const uint8_t *near, const uint8_t *far, int a, int b, int w, int origin, int16_t *s) {
	int lo = a < 0 ? 0 : a, hi = b > w ? w : b;
	near -= origin;
	if (far) {
		far -= origin;
		for (int i = lo; i < hi; i++) s[i - a] = (int16_t)(3 * near[i] + far[i]);
	} else {
		for (int i = lo; i < hi; i++) s[i - a] = near[i];
	}
	if (a < 0) s[0] = s[1];
	if (b > w) s[b - a - 1] = s[b - a - 2];
}

INLINE uint8_t ISA(clip)(int v) { return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v; }

#ifdef AVX2
// The chroma differences of 16 pixels, from which R, G and B are Y + r, Y + g and Y + b.
INLINE void ISA(differences)(__m256i cb, __m256i cr, __m256i *r, __m256i *g, __m256i *b) {
	const __m256i one = _mm256_set1_epi16(1);
	cb = _mm256_sub_epi16(cb, _mm256_set1_epi16(128));
	cr = _mm256_sub_epi16(cr, _mm256_set1_epi16(128));
	// 1.402 Cr = Cr + 0.402 Cr; 1.772 Cb = 2 Cb - 0.228 Cb: the high halves of 16-bit products, doubled for the rounding.
	__m256i m = _mm256_mulhi_epi16(_mm256_add_epi16(cr, cr), _mm256_set1_epi16(26345));
	*r = _mm256_add_epi16(cr, _mm256_srai_epi16(_mm256_add_epi16(m, one), 1));
	m = _mm256_mulhi_epi16(_mm256_add_epi16(cb, cb), _mm256_set1_epi16(-14942));
	*b = _mm256_add_epi16(_mm256_add_epi16(cb, cb), _mm256_srai_epi16(_mm256_add_epi16(m, one), 1));
	// -0.344 Cb - 0.714 Cr = -0.344 Cb + 0.286 Cr - Cr
	const __m256i k = _mm256_set1_epi32((int)(((uint32_t)18734 << 16) | (uint16_t)-22554)), half = _mm256_set1_epi32(1 << 15);
	__m256i lo = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), k), hi = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), k);
	lo = _mm256_srai_epi32(_mm256_add_epi32(lo, half), 16);
	hi = _mm256_srai_epi32(_mm256_add_epi32(hi, half), 16);
	*g = _mm256_sub_epi16(_mm256_packs_epi32(lo, hi), cr);
}

INLINE __m128i ISA(bytes)(__m256i v) { return _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)); }

// 16 pixels
INLINE void ISA(pixels)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out) {
	__m256i dr, dg, db, l = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)y));
	ISA(differences)(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)cb)), _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)cr)), &dr, &dg, &db);
	__m128i r = ISA(bytes)(_mm256_add_epi16(l, dr)), g = ISA(bytes)(_mm256_add_epi16(l, dg)), b = ISA(bytes)(_mm256_add_epi16(l, db));
	for (int part = 0; part < 3; part++) {
		static const int8_t at[3][3][16] = {
		    {{0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
		     {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
		     {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1}},
		    {{-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
		     {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
		     {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1}},
		    {{-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
		     {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
		     {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}},
		};
		__m128i v = _mm_shuffle_epi8(r, _mm_loadu_si128((const __m128i *)at[part][0]));
		v = _mm_or_si128(v, _mm_shuffle_epi8(g, _mm_loadu_si128((const __m128i *)at[part][1])));
		v = _mm_or_si128(v, _mm_shuffle_epi8(b, _mm_loadu_si128((const __m128i *)at[part][2])));
		_mm_storeu_si128((__m128i *)(out + 16 * part), v);
	}
}
#endif

INLINE void ISA(line)(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int n, uint8_t *out) {
	int i = 0;
#ifdef AVX2
	for (; i + 16 <= n; i += 16) ISA(pixels)(y + i, cb + i, cr + i, out + 3 * i);
#endif
	for (; i < n; i++) {
		int b = cb[i] - 128, r = cr[i] - 128;
		out[3 * i] = ISA(clip)(y[i] + ((91881 * r + (1 << 15)) >> 16));
		out[3 * i + 1] = ISA(clip)(y[i] + ((-22554 * b - 46802 * r + (1 << 15)) >> 16));
		out[3 * i + 2] = ISA(clip)(y[i] + ((116130 * b + (1 << 15)) >> 16));
	}
}

static void ISA(color)(const bl_job *j, uint8_t *planes, uint8_t *rgb) {
	int n = j->x1 - j->x0;
	uint8_t *lines = planes + j->lines; // two lines of chroma with 64 bytes around, then the weighted samples
	uint8_t *up[2] = {lines + 64, lines + 64 + n + 128};
	int16_t *restrict s = (int16_t *)(lines + 2 * (((size_t)n + 128 + 1) & ~(size_t)1));
	for (int y = j->y0; y < j->y1; y++, rgb += (size_t)n * 3) {
		const uint8_t *row[3];
		for (int c = 0; c < j->comps; c++) {
			int vs = c == 0 ? 1 : j->vs, near = y / vs, left = j->c[c].col0 * 8, top = j->c[c].row0 * 8;
			ptrdiff_t stride = (ptrdiff_t)(j->c[c].col1 - j->c[c].col0) * 8;
			const uint8_t *p = planes + j->c[c].at + (near - top) * stride;
			if (c == 0 || j->hs == 1) {
				row[c] = p + j->x0 - left;
				continue;
			}
			const uint8_t *q = NULL;
			if (vs == 2) {
				int far = y & 1 ? near + 1 : near - 1;
				far = far < 0 ? 0 : far >= j->c[c].h ? j->c[c].h - 1 : far;
				q = planes + j->c[c].at + (far - top) * stride;
			}
			int a = (j->x0 >> 1) - 1, b = ((j->x1 - 1) >> 1) + 2;
			ISA(weighted)(p, q, a, b, j->c[c].w, left, s);
			if (vs == 2)
				ISA(spread)(s, j->x0, j->x1, 8, 7, 4, up[c - 1]);
			else
				ISA(spread)(s, j->x0, j->x1, 1, 2, 2, up[c - 1]);
			row[c] = up[c - 1];
		}
		if (j->comps == 3)
			ISA(line)(row[0], row[1], row[2], n, rgb);
		else
			for (int i = 0; i < n; i++) rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = row[0][i];
	}
}
