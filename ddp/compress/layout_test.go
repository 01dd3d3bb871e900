package compress

import (
	"math/rand/v2"
	"testing"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/npu"
)

// TestLayout: every value has one place, places do not overlap, and parts are nearly equal.
func TestLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var params []bucket.Param
		for i := range 1 + rng.IntN(12) {
			params = append(params, bucket.Param{Name: string(rune('a' + i)), Elems: 1 + rng.Int64N(1<<uint(rng.IntN(18))), DType: npu.F32})
		}
		ranks, block := 1+rng.IntN(9), 32<<rng.IntN(6)
		p, err := bucket.New(params, bucket.Config{World: ranks})
		if err != nil {
			t.Fatal(err)
		}
		raw := func(name string) bool { return name[0]%3 == 0 }
		for k, b := range p.Buckets {
			l := newLayout(p, k, block, ranks, raw)
			seen := make([]bool, b.Elems)
			for _, spans := range l.spans {
				used := make([]bool, l.part)
				mark := func(at, n int) {
					for i := at; i < at+n; i++ {
						if used[i] {
							t.Fatalf("byte %d of a part is used twice", i)
						}
						used[i] = true
					}
				}
				for _, s := range spans {
					if s.raw {
						mark(s.value, 4*s.n)
					} else {
						mark(s.value, s.n)
						mark(s.scale, 4*s.blocks)
					}
					if s.scale%4 != 0 && !s.raw || s.raw && s.value%4 != 0 {
						t.Fatalf("%+v is not aligned", s)
					}
					for i := s.at; i < s.at+s.n; i++ {
						if seen[i] || l.raw[i/block] != s.raw || i/block < s.block || i/block >= s.block+s.blocks {
							t.Fatalf("element %d in %+v", i, s)
						}
						seen[i] = true
					}
				}
			}
			for i, ok := range seen {
				if !ok {
					t.Fatalf("element %d has no place", i)
				}
			}
			for _, pl := range b.Places {
				for i := pl.Offset / 4; raw(p.Params[pl.Param].Name) && i < (pl.Offset+pl.Bytes)/4; i++ {
					if !l.raw[int(i)/block] {
						t.Fatalf("element %d of %s is not raw", i, p.Params[pl.Param].Name)
					}
				}
			}
			if most := l.payload/ranks + 4*block + 64 + 8*(l.elems/pieceValues+1); l.part > most {
				t.Fatalf("%d bytes in %d parts of %d", l.payload, ranks, l.part)
			}
		}
	}
}
