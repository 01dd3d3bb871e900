package tokenizer

import (
	"fmt"
	"math/bits"
)

// noRank is worse than every rank: two tokens that do not merge.
const noRank = ^uint32(0)

// pairs says which two neighbours merge, into what, and how early: a hash table with open addressing, for a lookup is done for every byte of
// text and Go's map would be half of the time.
type pairs struct {
	slots []pairSlot
	shift uint
	n     int
}

type pairSlot struct {
	key  uint64 // 1 + left<<32 | right; 0 is an empty slot
	rank uint32
	id   int32
}

func pairKey(a, b int32) uint64 { return (uint64(uint32(a))<<32 | uint64(uint32(b))) + 1 }

// add stores a pair. One that is already there is replaced, as the last of two equal merges counts for Hugging Face.
func (p *pairs) add(a, b int32, rank uint32, id int32) error {
	if p.n*2 >= len(p.slots) {
		if p.n >= maxPairs {
			return fmt.Errorf("more than %d merges", maxPairs)
		}
		p.grow()
	}
	s := p.slot(pairKey(a, b))
	if s.key == 0 {
		p.n++
	}
	*s = pairSlot{pairKey(a, b), rank, id}
	return nil
}

func (p *pairs) grow() {
	old := p.slots
	p.slots = make([]pairSlot, max(1024, 2*len(old)))
	p.shift = uint(64 - bits.TrailingZeros(uint(len(p.slots))))
	for _, s := range old {
		if s.key != 0 {
			*p.slot(s.key) = s
		}
	}
}

// slot is where a key is or belongs.
func (p *pairs) slot(key uint64) *pairSlot {
	for i := key * 0x9e3779b97f4a7c15 >> p.shift; ; i = (i + 1) & uint64(len(p.slots)-1) {
		if s := &p.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// rank is noRank where the two do not merge.
func (p *pairs) rank(a, b int32) (uint32, int32) {
	if p.n == 0 {
		return noRank, 0
	}
	if s := p.slot(pairKey(a, b)); s.key != 0 {
		return s.rank, s.id
	}
	return noRank, 0
}

// addSplits stores every way in which a token is two others, for vocabularies that order merges by the token that comes out. lookup finds ids by text, also
// of characters that are not tokens.
func (p *pairs) addSplits(piece string, id int32, rank uint32, bytewise bool, lookup map[string]int32) error {
	for i := 1; i < len(piece); i++ {
		if !bytewise && piece[i]&0xc0 == 0x80 {
			continue // inside a character
		}
		left, ok := lookup[piece[:i]]
		if !ok {
			continue
		}
		if right, ok := lookup[piece[i:]]; ok {
			if err := p.add(left, right, rank, id); err != nil {
				return err
			}
		}
	}
	return nil
}
