package data

import (
	"slices"
	"testing"
)

// Repeated augmentation: every sample of an epoch comes Repeat times, copies differ, and neighbours are different samples.
func TestRepeatedSamples(t *testing.T) {
	for _, repeat := range []int{1, 2, 3, 8} {
		s := Sampler{Len: 480 * repeat, Seed: 3, Shuffle: true, World: 1, Batch: 8, Repeat: repeat}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		seen := map[[2]int]bool{}
		count := map[int]int{}
		o := s.Order(2)
		pairs := map[[2]int]int{}
		for pos := range s.Len {
			sample, copy := o.Draw(pos)
			if seen[[2]int{sample, copy}] || copy >= repeat {
				t.Fatalf("repeat %d: sample %d has copy %d twice, or too many", repeat, sample, copy)
			}
			seen[[2]int{sample, copy}] = true
			count[sample]++
			if pos%2 == 1 {
				before := o.At(pos - 1)
				if before == sample {
					t.Fatalf("repeat %d: position %d has sample %d like the one before", repeat, pos, sample)
				}
				pairs[[2]int{before, sample}]++
			}
		}
		if len(count) != 480 {
			t.Errorf("repeat %d: %d samples in an epoch of %d", repeat, len(count), s.Len)
		}
		for p, n := range pairs {
			if n > 1 {
				t.Errorf("repeat %d: pair %v comes %d times", repeat, p, n)
			}
		}
	}
	if err := (Sampler{Len: 10, World: 1, Batch: 1, Repeat: 9}).Check(); err == nil {
		t.Error("nine repeats are accepted")
	}
	short := Sampler{Len: 5, Seed: 1, Shuffle: true, World: 1, Batch: 2, Repeat: 3}
	for pos := range short.Len {
		if at := short.Order(0).At(pos); at < 0 || at >= 5 {
			t.Errorf("sample %d of five", at)
		}
	}
}

// Pairs stay together for any number of ranks.
func TestPairsStayTogether(t *testing.T) {
	const global = 24
	want := map[[2]int]bool{}
	for _, world := range []int{1, 2, 3, 4, 6, 12} {
		got := map[[2]int]bool{}
		all := map[int]bool{}
		for rank := range world {
			s := Sampler{Len: 96, Seed: 7, Shuffle: true, World: world, Rank: rank, Batch: global / world, Pairs: true}
			idx := make([]int, s.Batch)
			s.Rows(State{Consumed: global}, s.Order(0), idx)
			for j := 0; j < len(idx); j += 2 {
				got[[2]int{idx[j], idx[j+1]}] = true
				all[idx[j]], all[idx[j+1]] = true, true
			}
		}
		if world == 1 {
			want = got
		}
		for p := range want {
			if !got[p] {
				t.Errorf("%d ranks: pair %v is apart", world, p)
			}
		}
		if len(all) != global {
			t.Errorf("%d ranks read %d samples", world, len(all))
		}
	}
	if err := (Sampler{Len: 10, World: 1, Batch: 3, Pairs: true}).Check(); err == nil {
		t.Error("an odd batch is accepted")
	}
}

// labels is a source that has only labels.
type labels struct {
	*Synthetic
	of []int
}

func (l labels) Label(i int) int { return l.of[i] }
func (l labels) Len() int        { return len(l.of) }

// Balanced sampling: classes come equally often, all samples of small ones before any again, and streams differ.
func TestBalancedClasses(t *testing.T) {
	of := slices.Concat(slices.Repeat([]int{0}, 90), slices.Repeat([]int{4}, 9), slices.Repeat([]int{2}, 21))
	base, err := NewSynthetic(1, len(of), 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGroups(labels{base, of})
	if err != nil {
		t.Fatal(err)
	}
	if g.String() != "3 classes of 9 to 90 samples" {
		t.Error(g)
	}
	for _, shuffle := range []bool{false, true} {
		s := Sampler{Len: len(of), Seed: 2, Shuffle: shuffle, World: 1, Batch: 6, Groups: g}
		class, sample, streams := map[int]int{}, map[int]int{}, map[[2]int]bool{}
		o := s.Order(1)
		for pos := range s.Len {
			i, copy := o.Draw(pos)
			class[of[i]]++
			sample[i]++
			if streams[[2]int{i, copy}] {
				t.Fatalf("sample %d has copy %d twice", i, copy)
			}
			streams[[2]int{i, copy}] = true
		}
		for c, n := range class {
			if n != len(of)/3 {
				t.Errorf("class %d has %d of %d positions", c, n, len(of))
			}
		}
		for i := 90; i < 99; i++ {
			if n := sample[i]; n != 4 && n != 5 {
				t.Errorf("sample %d of nine comes %d times in 40 positions", i, n)
			}
		}
	}
	if slices.Equal(first(g, 0), first(g, 1)) {
		t.Error("two epochs have the same order")
	}
}

func first(g *Groups, epoch int) (out []int) {
	o := Sampler{Len: g.n, Seed: 2, Shuffle: true, World: 1, Batch: 6, Groups: g}.Order(epoch)
	for pos := range 30 {
		out = append(out, o.At(pos))
	}
	return out
}
