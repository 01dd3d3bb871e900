//go:build cgo && linux && (amd64 || arm64)

// The peak of the matrix unit of some Intel processors, in bfloat16.
#include "attention.h"
#include "limits.h"

#if !defined(__x86_64__) || !defined(__GNUC__) || defined(__clang__)

limit_loop limit_tiles(void) { return (limit_loop){0}; }

#else
#pragma GCC target("amx-tile,amx-bf16")
#include "amx.h"

// Four sums at a time, as the products of this package have.
static void products(void *ctx, int64_t lo, int64_t hi) {
	(void)lo, (void)hi;
	const limit_job *j = ctx;
	tiles_on();
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (int64_t r = 0; r < j->rounds; r++) {
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_release();
}

limit_loop limit_tiles(void) {
	if (!kern_amx()) return (limit_loop){0};
	return (limit_loop){LIMIT_TILES, products, 4 * 2 * 16 * 16 * 32};
}
#endif
