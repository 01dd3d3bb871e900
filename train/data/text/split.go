package text

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// sink receives the ids of one split; add is called once per document.
type sink interface {
	add(ids []int32) error
}

// splitter divides documents between training and validation. It holds the first document until a second one comes, because a single one is split by tokens.
type splitter struct {
	fraction   float64
	train, val sink
	first      []int32
	n          int64    // documents with ids
	docs       [2]int64 // of train and val
	tokens     [2]int64
	top        [2]int32 // greatest ids
}

func newSplitter(fraction float64, train, val sink) *splitter {
	return &splitter{fraction: fraction, train: train, val: val, top: [2]int32{-1, -1}}
}

func (s *splitter) add(ids []int32) error {
	if len(ids) == 0 {
		return nil
	}
	s.n++
	if s.fraction == 0 {
		return s.put(0, ids)
	}
	if s.n == 1 {
		s.first = slices.Clone(ids)
		return nil
	}
	if s.n == 2 {
		if err := s.put(s.side(0), s.first); err != nil {
			return err
		}
		s.first = nil
	}
	return s.put(s.side(s.n-1), ids)
}

// side chooses the split of a document: one of every 1/fraction documents, chosen pseudo-randomly, is for validation. A fixed position would be biased for
// text with a periodic structure.
func (s *splitter) side(i int64) int {
	block := math.Floor(float64(i) * s.fraction)
	lo, hi := int64(math.Ceil(block/s.fraction)), int64(math.Ceil((block+1)/s.fraction))
	h := uint64(block+1) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	if i == lo+int64(h%uint64(max(1, hi-lo))) {
		return 1
	}
	return 0
}

func (s *splitter) put(side int, ids []int32) error {
	to := s.train
	if side == 1 {
		to = s.val
	}
	s.docs[side]++
	s.tokens[side] += int64(len(ids))
	s.top[side] = max(s.top[side], slices.Max(ids))
	return to.add(ids)
}

// finish splits a single document and rejects empty splits.
func (s *splitter) finish() error {
	if s.first != nil {
		cut := len(s.first) - int(math.Round(float64(len(s.first))*s.fraction))
		if cut > 0 && cut < len(s.first) {
			if err := s.put(0, s.first[:cut]); err != nil {
				return err
			}
			return s.put(1, s.first[cut:])
		}
		return &InputError{fmt.Errorf("text: %d tokens are too few to use %v of them for validation", len(s.first), s.fraction)}
	}
	if s.n == 0 {
		return &InputError{errors.New("text: the inputs contain no text")}
	}
	if s.fraction > 0 && (s.docs[0] == 0 || s.docs[1] == 0) {
		return &InputError{fmt.Errorf("text: %d documents are too few to use %v of them for validation\nhint: use at least %d documents, or a greater fraction",
			s.n, s.fraction, int(math.Ceil(1/s.fraction)))}
	}
	return nil
}
