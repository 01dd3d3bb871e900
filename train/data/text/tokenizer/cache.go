package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	cacheSlots = 1 << 16
	cacheWord  = 48 // bytes of the longest word that is kept
)

// cache remembers the ids of words; text repeats itself. Each word has one slot, which the last word takes, so memory is bounded and
// nothing is locked. Entries never change, thus goroutines share them.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cached]
}

type cached struct {
	word string
	ids  []int32
}

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

// slot is where a word is or belongs; nil for a word that is not kept.
func (c *cache) slot(word string) *atomic.Pointer[cached] {
	if len(word) > cacheWord {
		return nil
	}
	return &c.slots[maphash.String(c.seed, word)%cacheSlots]
}

func store(slot *atomic.Pointer[cached], word string, ids []int32) {
	if slot != nil {
		slot.Store(&cached{strings.Clone(word), append([]int32(nil), ids...)})
	}
}
