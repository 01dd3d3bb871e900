package tokenizer

import "sync"

// smallWord is the number of symbols up to which looking through all pairs beats a heap.
const smallWord = 40

// scratch is what merging one word needs; it is reused.
type scratch struct {
	ids        []int32
	ranks      []uint32
	prev, next []int32
	heap       []uint64
	text       []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release gives the scratch back, unless a giant text has made it giant.
func (s *scratch) release() {
	if cap(s.ids) <= 1<<16 && cap(s.text) <= 1<<20 {
		scratches.Put(s)
	}
}

// merge does byte-pair encoding on s.ids: of all neighbours that merge, those of the least rank go first, and of these the leftmost; until none merges.
func (s *scratch) merge(p *pairs) {
	if len(s.ids) <= smallWord {
		s.mergeSmall(p)
	} else {
		s.mergeHeap(p)
	}
}

// mergeSmall looks through all pairs for each merge: quadratic, and quickest for a word.
func (s *scratch) mergeSmall(p *pairs) {
	ids := s.ids
	ranks := s.ranks[:0]
	for i := 1; i < len(ids); i++ {
		r, _ := p.rank(ids[i-1], ids[i])
		ranks = append(ranks, r)
	}
	for {
		best, at := noRank, -1
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		_, ids[at] = p.rank(ids[at], ids[at+1])
		ids = append(ids[:at+1], ids[at+2:]...)
		ranks = append(ranks[:at], ranks[at+1:]...)
		if at < len(ranks) {
			ranks[at], _ = p.rank(ids[at], ids[at+1])
		}
		if at > 0 {
			ranks[at-1], _ = p.rank(ids[at-1], ids[at])
		}
	}
	s.ids, s.ranks = ids, ranks[:0]
}

// mergeHeap keeps the pairs in a heap and the symbols in a linked list: n log n for words of any length. A pair that has changed stays in the heap; it is
// seen to be stale when its rank is not the one that counts at its place any more.
func (s *scratch) mergeHeap(p *pairs) {
	ids := s.ids
	n := len(ids)
	s.prev, s.next, s.ranks, s.heap = resize(s.prev, n), resize(s.next, n), resize(s.ranks, n), s.heap[:0]
	for i := range n {
		s.prev[i], s.next[i] = int32(i-1), int32(i+1)
		s.ranks[i] = noRank
		if i+1 < n {
			s.ranks[i], _ = p.rank(ids[i], ids[i+1])
		}
		if s.ranks[i] != noRank {
			s.heap = append(s.heap, uint64(s.ranks[i])<<32|uint64(i))
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	for len(s.heap) > 0 {
		top := s.heap[0]
		last := len(s.heap) - 1
		s.heap[0] = s.heap[last]
		s.heap = s.heap[:last]
		s.down(0)
		at := int32(uint32(top))
		if s.ranks[at] != uint32(top>>32) {
			continue
		}
		gone := s.next[at]
		_, ids[at] = p.rank(ids[at], ids[gone])
		s.ranks[gone], ids[gone] = noRank, -1
		s.next[at] = s.next[gone]
		if s.next[at] < int32(n) {
			s.prev[s.next[at]] = at
		}
		s.rerank(p, at, int32(n))
		if s.prev[at] >= 0 {
			s.rerank(p, s.prev[at], int32(n))
		}
	}
	out := ids[:0]
	for i := int32(0); i < int32(n); i = s.next[i] {
		out = append(out, ids[i])
	}
	s.ids = out
}

// rerank looks at the pair that begins at a place again.
func (s *scratch) rerank(p *pairs, at, n int32) {
	s.ranks[at] = noRank
	if s.next[at] >= n {
		return
	}
	if r, _ := p.rank(s.ids[at], s.ids[s.next[at]]); r != noRank {
		s.ranks[at] = r
		s.push(uint64(r)<<32 | uint64(at))
	}
}

func (s *scratch) push(v uint64) {
	s.heap = append(s.heap, v)
	i := len(s.heap) - 1
	for i > 0 && s.heap[(i-1)/2] > v {
		s.heap[i] = s.heap[(i-1)/2]
		i = (i - 1) / 2
	}
	s.heap[i] = v
}

func (s *scratch) down(i int) {
	h := s.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
