package data

import "fmt"

// Tail chooses what happens to the last samples of an epoch if they do not fill a batch on every rank. In every case all ranks
// see the same number of batches.
type Tail int

const (
	// Drop leaves them out (each epoch is shuffled differently, so different samples are left out each time). For training.
	Drop Tail = iota
	// Pad fills the batch with samples from the start of the same epoch; these rows have the label Ignore and weight 0, so the
	// gradient is exact while batch statistics see real pictures. For training.
	Pad
	// Short leaves the missing rows empty: zeros, label Ignore. Ranks with nothing left get an empty batch. For evaluation:
	// every sample counts exactly once.
	Short
)

var tails = [...]string{Drop: "drop", Pad: "pad", Short: "short"}

func (t Tail) String() string {
	if t < 0 || int(t) >= len(tails) {
		return fmt.Sprintf("tail(%d)", int(t))
	}
	return tails[t]
}

// ParseTail is the inverse of String.
func ParseTail(s string) (Tail, error) {
	for i, n := range tails {
		if n == s {
			return Tail(i), nil
		}
	}
	return 0, fmt.Errorf("data: unknown tail mode %q\nhint: use one of drop, pad, short", s)
}

// State is a position in the data: two numbers, so resuming needs no replay. It is the same on every rank and denotes the same samples at any
// world size, batch size or accumulation. Store it as JSON in a checkpoint.
type State struct {
	Epoch    int   `json:"epoch"`    // from 0
	Consumed int64 `json:"consumed"` // samples of this epoch that all ranks together have used
}

// String returns "epoch 3, sample 1280".
func (s State) String() string { return fmt.Sprintf("epoch %d, sample %d", s.Epoch, s.Consumed) }

// Sampler decides which rank reads which sample. It is a value: every method is a pure function of its fields.
//
// An epoch is one order of all samples, f(Seed, epoch), the same on every rank. A batch that starts at position p of the order covers the
// next Batch·World positions; rank r reads p+r, p+r+World, p+r+2·World, … of them. So the set of samples in a global batch depends only
// on its size, not on how ranks and accumulation divide it.
type Sampler struct {
	Len     int    // samples in the source
	Seed    uint64 // of the whole run
	Shuffle bool
	Rank    int
	World   int
	Batch   int // rows per batch on one rank (micro-batch)
	Tail    Tail
	// Pairs hands out rows in pairs: the positions p and p+1, p+2 and p+3 … of a global batch that starts at p become neighbouring rows (0 and 1, 2 and 3 …)
	// of one rank, whatever the number of ranks. For sources that mix samples (Paired). Batch must then be even.
	Pairs bool
	// Repeat gives every sample of an order several times, with different random streams, a few positions apart (repeated augmentation: Hoffer et al., arXiv
	// 1901.09335; Berman et al., arXiv 1902.05509). An epoch keeps its length, so it holds a Repeat-th of the samples. 0 means 1.
	Repeat int
	// Groups divides the samples into classes: balanced sampling. Each class then has equally many positions in an epoch of the same length; samples of small
	// classes come several times, with different random streams. nil: every sample once.
	Groups *Groups
}

// Check reports what is wrong with the fields.
func (s Sampler) Check() error {
	switch {
	case s.World < 1 || s.Rank < 0 || s.Rank >= s.World:
		return fmt.Errorf("data: rank %d of world %d does not exist", s.Rank, s.World)
	case s.Batch < 1:
		return fmt.Errorf("data: batch size is %d, must be at least 1", s.Batch)
	case s.Len < 1:
		return fmt.Errorf("data: the source has no samples")
	case s.Pairs && s.Batch%2 != 0:
		return fmt.Errorf("data: samples are mixed in pairs, so the batch of a rank must be even, got %d", s.Batch)
	case s.Repeat < 0 || s.Repeat > maxRepeat:
		return fmt.Errorf("data: samples are repeated %d times\nhint: use 1 to %d", s.Repeat, maxRepeat)
	case s.Groups != nil && s.Groups.n != s.Len:
		return fmt.Errorf("data: %d samples are divided into classes, but the source has %d", s.Groups.n, s.Len)
	case s.Tail < Drop || s.Tail > Short:
		return fmt.Errorf("data: unknown tail mode %v", s.Tail)
	case s.Tail == Drop && int64(s.Len) < s.global():
		return fmt.Errorf("data: %d samples do not fill one batch of %d on each of %d ranks, and the tail is dropped, so the epoch would be empty"+
			"\nhint: use a smaller batch, or tail = \"pad\"", s.Len, s.Batch, s.World)
	}
	return nil
}

func (s Sampler) global() int64 { return int64(s.Batch) * int64(s.World) }

// Batches is the number of batches in a full epoch, the same on all ranks.
func (s Sampler) Batches() int { return s.BatchesFrom(0) }

// BatchesFrom is the number of batches left after consumed samples of the epoch.
func (s Sampler) BatchesFrom(consumed int64) int {
	left := max(0, int64(s.Len)-consumed)
	if s.Tail != Drop {
		left += s.global() - 1
	}
	return int(left / s.global())
}

// Used is the number of samples of an epoch that count, over all ranks: Len, minus what Drop leaves out.
func (s Sampler) Used() int {
	if s.Tail == Drop {
		return int(int64(s.Batches()) * s.global())
	}
	return s.Len
}

// Normal normalises a state so that its epoch has at least one batch left: the end of one epoch becomes the start of
// the next.
func (s Sampler) Normal(at State) State {
	if s.BatchesFrom(at.Consumed) == 0 {
		return State{Epoch: at.Epoch + 1}
	}
	return at
}

// Next returns the state one batch after at. At the end of an epoch it is the start of the next.
func (s Sampler) Next(at State) State {
	at = s.Normal(at)
	at.Consumed = min(at.Consumed+s.global(), int64(s.Len))
	return s.Normal(at)
}

// Skip returns the state n batches after at, in constant time.
func (s Sampler) Skip(at State, n int64) State {
	at = s.Normal(at)
	if left := int64(s.BatchesFrom(at.Consumed)); n >= left {
		n -= left
		per := int64(s.Batches())
		at = State{Epoch: at.Epoch + 1 + int(n/per)}
		n %= per
	}
	at.Consumed = min(at.Consumed+n*s.global(), int64(s.Len))
	return s.Normal(at)
}

// CheckState rejects a position that does not exist in this data set.
func (s Sampler) CheckState(at State) error {
	if at.Epoch < 0 || at.Consumed < 0 || at.Consumed > int64(s.Len) {
		return fmt.Errorf("data: position (%v) does not exist: the source has %d samples\nhint: the checkpoint was made with a different data set", at, s.Len)
	}
	return nil
}

// Rows writes the samples of this rank's batch at a state into idx (length Batch) and returns how many count: these come
// first. With Pad the rest are samples of weight 0; with Short the rest are -1.
func (s Sampler) Rows(at State, o Order, idx []int) (valid int) {
	for j := range idx[:s.Batch] {
		pos := s.Position(at, j)
		switch {
		case pos < int64(s.Len):
			idx[j] = o.At(int(pos))
			valid++
		case s.Tail == Pad:
			idx[j] = o.At(int(pos % int64(s.Len)))
		default:
			idx[j] = -1
		}
	}
	return valid
}

// Position is the place in the order of row j of this rank's batch at a state. It may lie beyond the end.
func (s Sampler) Position(at State, j int) int64 {
	unit := int64(1)
	if s.Pairs {
		unit = 2
	}
	u, k := int64(j)/unit, int64(j)%unit
	return at.Consumed + (u*int64(s.World)+int64(s.Rank))*unit + k
}
