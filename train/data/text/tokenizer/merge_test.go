package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// naive is the definition: the pair of the least rank, the leftmost of these, until none merges.
func naive(p *pairs, ids []int32) []int32 {
	ids = slices.Clone(ids)
	for {
		best, at, id := noRank, -1, int32(0)
		for i := 0; i+1 < len(ids); i++ {
			if r, n := p.rank(ids[i], ids[i+1]); r < best {
				best, at, id = r, i, n
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, id)
	}
}

// Both ways to merge equal the definition, on random vocabularies with equal ranks among them.
func TestMergeEqualsNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var p pairs
		symbols := int32(2 + r.IntN(4))
		for next := symbols; next < symbols+30; next++ {
			if err := p.add(r.Int32N(next), r.Int32N(next), uint32(r.IntN(20)), next); err != nil {
				t.Fatal(err)
			}
		}
		ids := make([]int32, r.IntN(200))
		for i := range ids {
			ids[i] = r.Int32N(symbols)
		}
		want := naive(&p, ids)
		small, heap := &scratch{ids: slices.Clone(ids)}, &scratch{ids: slices.Clone(ids)}
		small.mergeSmall(&p)
		heap.mergeHeap(&p)
		if !slices.Equal(small.ids, want) || !slices.Equal(heap.ids, want) {
			t.Fatalf("%v:\n   small %v\n    heap %v\n   naive %v", ids, small.ids, heap.ids, want)
		}
	}
}

// A megabyte without a place to cut takes n log n: below a second alone. Quadratic work would be 10¹² steps, many minutes.
func TestLongWords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := make([]byte, 1<<16)
	for i := range random {
		random[i] = "etaoin"[r.IntN(6)]
	}
	for file, as := range map[string]int{"mistral-v1.model": 1 << 20, "tok512.bin": 1 << 17, "bytelevel.json": 1 << 20, "characters.json": 1 << 17} {
		tok, err := Open("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{strings.Repeat("a", as), string(random), strings.Repeat(" ", 1<<16), strings.Repeat("é", 1<<15), strings.Repeat("<", 1<<16)} {
			begin := time.Now()
			ids := tok.Encode(nil, text)
			if d := time.Since(begin); d > 30*time.Second {
				t.Errorf("%s: %v for %.5q…", file, d, text)
			}
			if back := string(tok.Decode(nil, ids)); back != text {
				t.Errorf("%s: %.5q… came back as %.5q…, %d bytes", file, text, back, len(back))
			}
		}
	}
}

// The cache changes nothing: words fall out of it, many goroutines use it.
func TestCacheIsInvisible(t *testing.T) {
	tok, err := Open("testdata/bytelevel.json")
	if err != nil {
		t.Fatal(err)
	}
	m := tok.(*model)
	text := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for range 20_000 {
			for range 1 + r.IntN(4) {
				b.WriteByte("abcdefghij"[r.IntN(10)])
			}
			b.WriteByte(' ')
		}
		return b.String()
	}
	done := make(chan bool)
	for g := range uint64(4) {
		go func() {
			s := text(g)
			ids := tok.Encode(nil, s)
			var want []int32
			sc := &scratch{}
			for i := 0; i < len(s); {
				j := m.scan(s, i)
				want = m.byteWord(want, sc, s[i:j])
				i = j
			}
			done <- slices.Equal(ids, want) && slices.Equal(tok.Encode(nil, s), want)
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("the cache changed the ids")
		}
	}
}
