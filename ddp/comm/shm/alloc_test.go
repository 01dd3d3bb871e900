package shm

import (
	"testing"
	"unsafe"

	"github.com/gotrain/gotrain/ddp/comm"
)

// Memory of different ranks does not begin at the same place of a page, and is aligned for every kernel.
func TestColour(t *testing.T) {
	seen := map[int64]int{}
	for r := range 64 {
		s := colour(r)
		if other, ok := seen[s]; ok || s%64 != 0 || s < 0 || s >= pageBytes {
			t.Errorf("colour(%d) = %d, as rank %d (%v)", r, s, other, ok)
		}
		seen[s] = r
	}
	g, err := NewLocal(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{1, 64, pageBytes, 3<<20 + 4} {
		places := map[uintptr]bool{}
		for _, c := range g {
			b, err := c.Alloc(bytes)
			if err != nil {
				t.Fatal(err)
			}
			mem := b.Host()
			if int64(len(mem)) != bytes || int64(cap(mem)) != bytes {
				t.Errorf("%d bytes: length %d, capacity %d", bytes, len(mem), cap(mem))
			}
			at := uintptr(unsafe.Pointer(&mem[0]))
			if at%64 != 0 {
				t.Errorf("%d bytes of rank %d begin at %#x", bytes, c.Rank(), at)
			}
			places[at%pageBytes] = true
			mem[0], mem[bytes-1] = 1, 1 // mapped to its end
			off, base, size := c.(*Comm).where(comm.Mem{Ptr: nptr(b), Elems: bytes, DType: 7})
			if off < base || off+bytes > base+size {
				t.Errorf("%d bytes of rank %d lie at %d, outside of the region %d+%d", bytes, c.Rank(), off, base, size)
			}
			if err := b.Free(); err != nil {
				t.Error(err)
			}
		}
		if len(places) != len(g) {
			t.Errorf("%d bytes: %d ranks begin at %d places of a page", bytes, len(g), len(places))
		}
	}
	for _, c := range g {
		c.Close()
	}
}
