#pragma once

#include <immintrin.h>
#include <stdint.h>

// Configures all eight tiles of the matrix unit as 16 rows of 64 bytes. The configuration belongs to the thread; oneDNN sets its own before it uses the unit.
// Include this file behind #pragma GCC target("amx-tile").
static inline void tiles_on(void) {
	struct {
		uint8_t palette, start, zero[14];
		uint16_t width[16];
		uint8_t rows[16];
	} cfg __attribute__((aligned(64))) = {.palette = 1};
	for (int i = 0; i < 8; i++) cfg.width[i] = 64, cfg.rows[i] = 16;
	_tile_loadconfig(&cfg);
}
