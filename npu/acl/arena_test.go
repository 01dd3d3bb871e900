package acl

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// bank hands out address ranges and checks what comes back.
type bank struct {
	next uintptr
	room int64
	have map[uintptr]int64
}

func newArena(room, limit int64) (*arena, *bank) {
	b := &bank{next: 1<<30 + 64, room: room, have: map[uintptr]int64{}}
	return &arena{limit: limit,
		get: func(n int64) (uintptr, error) {
			if n > b.room {
				return 0, &cann.Error{Call: "aclrtMalloc", Code: cann.CodeOutOfMemory}
			}
			b.room -= n
			at := b.next
			b.next += uintptr(n) + 1<<20
			b.have[at] = n
			return at, nil
		},
		put: func(at uintptr) error {
			n, ok := b.have[at]
			if !ok {
				return errors.New("not a block")
			}
			delete(b.have, at)
			b.room += n
			return nil
		}}, b
}

// Random pieces never overlap, are aligned, and all memory comes back.
func TestArena(t *testing.T) {
	a, b := newArena(1<<30, 0)
	r := rand.New(rand.NewPCG(3, 4))
	var live []piece
	for range 3000 {
		if len(live) > 0 && r.IntN(5) < 2 {
			i := r.IntN(len(live))
			if err := a.release(live[i]); err != nil {
				t.Fatal(err)
			}
			live = slices.Delete(live, i, i+1)
			continue
		}
		p, err := a.alloc(int64(1 + r.IntN(1<<r.IntN(22))))
		if err != nil {
			t.Fatal(err)
		}
		if p.addr()%alignment != 0 || p.size%alignment != 0 || p.at+p.size > p.block.size {
			t.Fatalf("piece at %#x of %d bytes", p.addr(), p.size)
		}
		for _, o := range live {
			if p.addr() < o.addr()+uintptr(o.size) && o.addr() < p.addr()+uintptr(p.size) {
				t.Fatal("two pieces overlap")
			}
		}
		live = append(live, p)
	}
	used := int64(0)
	for _, p := range live {
		used += p.size
	}
	if used != a.used {
		t.Errorf("%d bytes in use, counted %d", used, a.used)
	}
	for _, p := range live {
		if err := a.release(p); err != nil {
			t.Fatal(err)
		}
	}
	if a.used != 0 || len(a.blocks) > 1 {
		t.Errorf("%d bytes in %d blocks are left", a.used, len(a.blocks))
	}
	if err := a.clear(); err != nil || len(b.have) != 0 || a.taken != 0 {
		t.Errorf("%v, %d blocks were not given back", err, len(b.have))
	}
}

func TestArenaIsFull(t *testing.T) {
	a, _ := newArena(5<<20, 0)
	p, err := a.alloc(100) // not a block of 32 MiB, but what there is
	if err != nil {
		t.Fatal(err)
	}
	var e *cann.Error
	if _, err := a.alloc(4 << 20); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if err := a.release(p); err != nil {
		t.Fatal(err)
	}
	a, _ = newArena(1<<40, 64<<20)
	if _, err := a.grow(64 << 20); err != nil {
		t.Fatal(err)
	}
	if p, err = a.alloc(60 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := a.alloc(5 << 20); err == nil || !strings.Contains(err.Error(), "memory_mib") || !strings.Contains(err.Error(), "hint: ") {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := a.release(p); err != nil || len(a.blocks) != 1 {
		t.Errorf("the block of a limited arena went back: %v", err)
	}
}

// Slots never overlap those in use, whatever the order in which they come back.
func TestSlots(t *testing.T) {
	s := slots{size: 1 << 16}
	r := rand.New(rand.NewPCG(5, 6))
	type use struct{ at, n, id int64 }
	var live []use
	taken := 0
	for range 5000 {
		n := int64(1 + r.IntN(1<<12))
		at, id, ok := s.take(n)
		if !ok || r.IntN(3) == 0 {
			if ok {
				s.give(id)
			}
			if len(live) > 0 {
				i := r.IntN(len(live))
				s.give(live[i].id)
				live = slices.Delete(live, i, i+1)
			}
			continue
		}
		taken++
		if at < 0 || at+n > s.size || at%64 != 0 {
			t.Fatalf("slot at %d of %d bytes", at, n)
		}
		for _, o := range live {
			if at < o.at+o.n && o.at < at+n {
				t.Fatal("two slots overlap")
			}
		}
		live = append(live, use{at, n, id})
	}
	for _, u := range live {
		s.give(u.id)
	}
	if _, _, ok := s.take(s.size / 2); !ok || taken < 1000 {
		t.Errorf("an empty ring has no room, %d slots were taken", taken)
	}
}
