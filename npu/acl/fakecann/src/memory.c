// Memory of devices, and page-locked memory. A device's addresses are mapped nowhere, so the host cannot read them; the bytes are elsewhere.
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "rt.h"

enum { ZONE = 4096, FRESH = 0xA5, FREED = 0x5A, GUARD = 0xC3, LARGE = 1 << 20, PATTERN = 16 << 20 };
static const int64_t quarantine_max = 64 << 20;

static fk_block **blocks; // by address
static int64_t count, room;
static fk_block *quarantine; // newest first
static int64_t quarantined;

static int64_t place_of(uintptr_t addr) { // index of the first block behind addr
	int64_t lo = 0, hi = count;
	while (lo < hi) {
		int64_t mid = (lo + hi) / 2;
		if (blocks[mid]->addr <= addr) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

fk_block *fk_find(const void *p) {
	int64_t i = place_of((uintptr_t)p) - 1;
	if (i < 0) return NULL;
	fk_block *b = blocks[i];
	return (uintptr_t)p < b->addr + (b->bytes ? b->bytes : 1) ? b : NULL;
}

static void insert(fk_block *b) {
	if (count == room) {
		room = room ? 2 * room : 256;
		blocks = realloc(blocks, (size_t)room * sizeof *blocks);
		if (!blocks) abort();
	}
	int64_t i = place_of(b->addr);
	memmove(blocks + i + 1, blocks + i, (size_t)(count - i) * sizeof *blocks);
	blocks[i] = b;
	count++;
}

static void take_out(fk_block *b) {
	int64_t i = place_of(b->addr) - 1;
	memmove(blocks + i, blocks + i + 1, (size_t)(count - i - 1) * sizeof *blocks);
	count--;
}

char *fk_reach(int device, const void *p, int64_t bytes, char *err, size_t n) {
	fk_block *b = fk_find(p);
	if (!b) {
		snprintf(err, n, "address %p is no memory of a device", p);
	} else if (b->place == FK_FREED) {
		snprintf(err, n, "address %p was freed", p);
	} else if (b->place != FK_DEVICE) {
		snprintf(err, n, "address %p is host memory", p);
	} else if (b->device != device && !fk_devices[device].peers[b->device]) {
		snprintf(err, n, "address %p belongs to device %d, not %d", p, b->device, device);
	} else if ((uintptr_t)p + (uint64_t)bytes > b->addr + b->bytes) {
		snprintf(err, n, "%lld bytes at %p end %lld bytes behind their block of %zu bytes", (long long)bytes, p,
			(long long)((uintptr_t)p + (uint64_t)bytes - b->addr - b->bytes), b->bytes);
	} else {
		b->touched = true;
		return b->mem + ((uintptr_t)p - b->addr);
	}
	return NULL;
}

// device_range reserves addresses. A block begins at a multiple of 64 that is none of 512: more is not promised.
static uintptr_t device_range(size_t bytes) {
	static uintptr_t next, end;
	size_t want = (bytes + 2 * ZONE + 511) / 512 * 512;
	if (end - next < want) {
		size_t chunk = want > 1 << 30 ? want : 1 << 30;
		char *p = mmap(NULL, chunk, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) return 0;
		next = (uintptr_t)p;
		end = next + chunk;
	}
	uintptr_t at = next + ZONE + 64;
	next += want;
	return at;
}

static int pattern_file(int byte) {
	static int files[2] = {-1, -1};
	int *f = &files[byte == FREED];
	if (*f >= 0) return *f;
	*f = memfd_create("fakecann", MFD_CLOEXEC);
	char *p = *f >= 0 && ftruncate(*f, PATTERN) == 0 ? mmap(NULL, PATTERN, PROT_READ | PROT_WRITE, MAP_SHARED, *f, 0) : MAP_FAILED;
	if (p == MAP_FAILED) return -1;
	memset(p, byte, PATTERN);
	munmap(p, PATTERN);
	return *f;
}

// cover fills memory with a byte. Whole pages of large blocks get a mapping that costs nothing until it is written.
static void cover(char *p, size_t n, int byte, bool mapped) {
	int f = mapped && n >= LARGE ? pattern_file(byte) : -1;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), a = (uintptr_t)p, from = (a + page - 1) / page * page, to = (a + n) / page * page;
	if (f < 0 || from >= to) {
		memset(p, byte, n);
		return;
	}
	memset(p, byte, from - a);
	memset((char *)to, byte, a + n - to);
	for (uintptr_t at = from; at < to; at += PATTERN) {
		size_t part = to - at < PATTERN ? to - at : PATTERN;
		if (mmap((void *)at, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, f, 0) == MAP_FAILED) memset((void *)at, byte, part);
	}
}

static fk_block *block_new(enum fk_place place, int device, size_t bytes) {
	fk_block *b = fk_zalloc(sizeof *b);
	b->place = place;
	b->device = device;
	b->bytes = bytes;
	b->mapped = bytes + 3 * ZONE;
	if (bytes >= LARGE) {
		b->region = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (b->region == MAP_FAILED) b->region = NULL;
	} else if (posix_memalign((void **)&b->region, ZONE, b->mapped)) {
		b->region = NULL;
	}
	b->addr = b->region && place == FK_DEVICE ? device_range(bytes) : 64;
	if (!b->region || !b->addr) {
		free(b);
		return NULL;
	}
	b->mem = b->region + ZONE + b->addr % ZONE; // the same alignment as the device's address
	if (place == FK_PINNED) b->addr = (uintptr_t)b->mem;
	memset(b->mem - ZONE, GUARD, ZONE);
	memset(b->mem + bytes, GUARD, ZONE);
	cover(b->mem, bytes, FRESH, bytes >= LARGE);
	insert(b);
	return b;
}

static bool zone_holds(const char *p) {
	for (int i = 0; i < ZONE; i++) {
		if ((unsigned char)p[i] != GUARD) return false;
	}
	return true;
}

static void guard(fk_block *b) {
	bool before = zone_holds(b->mem - ZONE), behind = zone_holds(b->mem + b->bytes);
	if (before && behind) return;
	fk_violation(0, "bytes %s a block of %zu bytes of %s memory were written", before ? "behind" : "before", b->bytes, (b->place == FK_FREED ?
		b->was : b->place) == FK_PINNED ? "page-locked" : "device");
	memset(b->mem - ZONE, GUARD, ZONE);
	memset(b->mem + b->bytes, GUARD, ZONE);
}

void fk_guards(int device) {
	for (int64_t i = 0; i < count; i++) {
		fk_block *b = blocks[i];
		if (b->place == FK_PINNED || (b->place == FK_DEVICE && b->device == device && b->touched)) {
			b->touched = false;
			guard(b);
		}
	}
}

// shrink gives old freed blocks back. Their addresses stay known as freed, unless the host uses them again.
static void shrink(void) {
	if (quarantined <= quarantine_max) return;
	for (fk_stream *s = fk_streams; s; s = s->next) {
		if (s->done != s->issued) return; // a kernel may be in one
	}
	for (fk_block **p = &quarantine; *p;) {
		fk_block *b = *p;
		if (quarantined <= quarantine_max || b->older) {
			p = &b->older;
			continue;
		}
		*p = NULL; // the oldest
		quarantined -= (int64_t)b->bytes;
		guard(b);
		if (b->bytes >= LARGE) {
			munmap(b->region, b->mapped);
		} else {
			free(b->region);
		}
		b->region = b->mem = NULL;
		if (b->was == FK_PINNED) {
			take_out(b);
			free(b);
		}
		p = &quarantine;
	}
}

static void put_away(fk_block *b, bool checked) {
	guard(b);
	fk_order_free(b, checked);
	cover(b->mem, b->bytes, FREED, b->bytes >= LARGE);
	b->was = b->place;
	b->place = FK_FREED;
	b->older = quarantine;
	quarantine = b;
	quarantined += (int64_t)b->bytes;
	shrink();
}

bool fk_take(int device, int64_t bytes) {
	if (fk_devices[device].used + bytes > fk_sw.memory) return false;
	fk_devices[device].used += bytes;
	return true;
}

void fk_give(int device, int64_t bytes) { fk_devices[device].used -= bytes; }

int64_t fk_memory_used(int device) { return fk_devices[device].used; }

static int64_t charged(size_t bytes) { return (int64_t)((bytes + 31) / 32 * 32 + 32); }

static int32_t device_malloc(void **out, uint64_t bytes, int32_t policy) {
	int32_t code;
	fk_context *c = fk_alive(&code);
	if (!c) return code;
	if (!out || !bytes) return fk_error(107000, "%s", out ? "the size is 0" : "devPtr is null");
	if (policy < 0 || (policy & ~0x1100) > 7) return fk_error(107000, "policy %d does not exist", policy);
	if (bytes > (uint64_t)fk_sw.memory || !fk_take(c->device, charged(bytes))) {
		return fk_error(207001, "Failed to apply for memory: %llu bytes on device %d, %lld of %lld in use", (unsigned long long)bytes, c->device,
			(long long)fk_devices[c->device].used,
			(long long)fk_sw.memory);
	}
	fk_block *b = block_new(FK_DEVICE, c->device, bytes);
	if (!b) {
		fk_give(c->device, charged(bytes));
		return fk_error(207001, "the host has no memory for the fake's device");
	}
	fk_count.device_blocks++;
	fk_count.device_bytes += (int64_t)bytes;
	*out = (void *)b->addr;
	return 0;
}

int32_t f_aclrtMalloc(void *out, uint64_t bytes, int32_t policy) {
	fk_acquire();
	int32_t code = device_malloc(out, bytes, policy);
	fk_release();
	return code;
}

int32_t f_aclrtMallocHost(void *out, uint64_t bytes) {
	int32_t code = 0;
	fk_acquire();
	if (fk_alive(&code)) {
		fk_block *b = out && bytes ? block_new(FK_PINNED, -1, bytes) : NULL;
		if (b) {
			*(void **)out = b->mem;
			fk_count.host_blocks++;
			fk_count.host_bytes += (int64_t)bytes;
		} else {
			code = fk_error(out && bytes ? 207001 : 107000, "%llu bytes of page-locked memory", (unsigned long long)bytes);
		}
	}
	fk_release();
	return code;
}

static int32_t give_back(void *p, enum fk_place place, const char *what, bool checked) {
	fk_block *b = p ? fk_find(p) : NULL;
	if (!p) return fk_violation(107000, "the address is null");
	if (b && b->place == FK_FREED) return fk_violation(107000, "%p was freed before", p);
	if (!b || b->place != place || (uintptr_t)p != b->addr) return fk_violation(107000, "%p is no block of %s memory", p, what);
	if (place == FK_DEVICE) {
		fk_count.device_blocks--;
		fk_count.device_bytes -= (int64_t)b->bytes;
		fk_give(b->device, charged(b->bytes));
	} else {
		fk_count.host_blocks--;
		fk_count.host_bytes -= (int64_t)b->bytes;
	}
	put_away(b, checked);
	return 0;
}

static int32_t give_back_here(void *p, enum fk_place place, const char *what) {
	int32_t code = 0;
	fk_acquire();
	fk_context *c = fk_need(&code); // memory of a dead context can be freed, too
	if (c) {
		code = give_back(p, place, what, !c->dead);
		if (!code && c->dead) code = fk_error(c->dead, "%s", c->why);
	}
	fk_release();
	return code;
}

int32_t f_aclrtFree(void *p) { return give_back_here(p, FK_DEVICE, "device"); }

int32_t f_aclrtFreeHost(void *p) { return give_back_here(p, FK_PINNED, "page-locked"); }

int32_t f_aclrtGetMemInfo(int32_t attr, void *free_bytes, void *total) {
	int32_t code = 0;
	fk_acquire();
	fk_context *c = fk_alive(&code);
	if (c && (!free_bytes || !total || attr < 0 || attr > 11)) {
		code = fk_error(107000, "attr is %d, free %p, total %p", attr, free_bytes, total);
	} else if (c) {
		bool hbm = attr == 1 || attr == 4 || attr == 5; // the chips have no DDR of their own
		*(size_t *)free_bytes = hbm ? (size_t)(fk_sw.memory - fk_devices[c->device].used) : 0;
		*(size_t *)total = hbm ? (size_t)fk_sw.memory : 0;
	}
	fk_release();
	return code;
}
