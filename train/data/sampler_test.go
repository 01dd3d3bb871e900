package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestPermutationIsABijection(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 31, 100, 1000, 1025, 65537} {
		for epoch := range 3 {
			p := newPermutation(n, 11, epoch)
			seen := make([]bool, n)
			for i := range n {
				v := p.at(i)
				if v < 0 || v >= n || seen[v] {
					t.Fatalf("n=%d epoch=%d: at(%d) = %d is out of range or repeated", n, epoch, i, v)
				}
				seen[v] = true
			}
		}
	}
}

// Every sample should be equally likely at every position. With 6000 draws a cell expects 6000/n; the chi-square over n·n cells has
// (n-1)² degrees of freedom (rows and columns sum to a constant), deviation √(2·dof); six deviations never happen by chance.
func TestPermutationIsFair(t *testing.T) {
	const draws = 6000
	for _, n := range []int{2, 3, 5, 6, 8, 13} {
		count := make([]int, n*n)
		for e := range draws {
			p := newPermutation(n, 3, e)
			for i := range n {
				count[i*n+p.at(i)]++
			}
		}
		chi, want := 0.0, float64(draws)/float64(n)
		for _, c := range count {
			chi += (float64(c) - want) * (float64(c) - want) / want
		}
		dof := float64((n - 1) * (n - 1))
		if limit := dof + 6*math.Sqrt(2*dof); chi > limit {
			t.Errorf("n=%d: chi-square %.1f above %.1f", n, chi, limit)
		}
	}
}

// Neighbours in the order must not be neighbours in the source: the mean distance of a random order is (n+1)/3.
func TestPermutationScatters(t *testing.T) {
	const n = 10000
	for e := range 5 {
		p, sum, fixed := newPermutation(n, 42, e), 0, 0
		for i := range n {
			if p.at(i) == i {
				fixed++
			}
			if i > 0 {
				sum += max(p.at(i)-p.at(i-1), p.at(i-1)-p.at(i))
			}
		}
		if mean := float64(sum) / (n - 1); mean < 0.95*n/3 || mean > 1.05*n/3 {
			t.Errorf("epoch %d: mean step %.0f, want about %d", e, mean, n/3)
		}
		if fixed > 12 { // Poisson with mean 1
			t.Errorf("epoch %d: %d samples stayed in place", e, fixed)
		}
	}
}

// The order is part of the format: a checkpoint of an older gotrain must resume in it.
func TestOrderNeverChanges(t *testing.T) {
	s := Sampler{Len: 10, Seed: 1, Shuffle: true, World: 1, Batch: 1}
	for epoch, want := range [][]int{{7, 4, 9, 1, 0, 8, 2, 6, 3, 5}, {1, 6, 2, 3, 0, 8, 4, 5, 9, 7}} {
		var got []int
		for i := range s.Len {
			got = append(got, s.Order(epoch).At(i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("epoch %d: %#v, want %v", epoch, got, want)
		}
	}
	r := SampleRand(1, 2, 3)
	want := [3]uint64{0xad09d2212193f515, 0x73ef61da2feb9975, 0x2e0}
	if got := [3]uint64{r.Uint64(), r.Uint64(), uint64(r.IntN(1000))}; got != want {
		t.Errorf("SampleRand(1,2,3): %#v, want %v", got, want)
	}
}

// take collects what each rank gets in an epoch from a state on: the samples that count, in global position order.
func take(t *testing.T, s Sampler, at State, batches int) (got []int, end State) {
	t.Helper()
	idx := make([]int, s.Batch)
	for range batches {
		o := s.Order(at.Epoch)
		rows := make([][]int, s.World)
		var next State
		for r := range s.World {
			q := s
			q.Rank = r
			at = q.Normal(at)
			v := q.Rows(at, o, idx)
			rows[r] = slices.Clone(idx[:v])
			next = q.Next(at)
		}
		for j := range s.Batch {
			for r := range s.World {
				if j < len(rows[r]) {
					got = append(got, rows[r][j])
				}
			}
		}
		at = next
	}
	return got, at
}

// Union over ranks = the epoch, no repeats, for every tail mode, world and batch.
func TestRanksCoverTheEpochOnce(t *testing.T) {
	for _, n := range []int{1, 2, 7, 24, 25, 100} {
		for _, world := range []int{1, 2, 3, 8} {
			for _, batch := range []int{1, 3, 4} {
				for _, tail := range []Tail{Drop, Pad, Short} {
					s := Sampler{Len: n, Seed: 5, Shuffle: true, World: world, Batch: batch, Tail: tail}
					if err := s.Check(); err != nil {
						if tail != Drop || n >= world*batch {
							t.Fatal(err)
						}
						continue
					}
					name := fmt.Sprintf("n=%d W=%d B=%d %v", n, world, batch, tail)
					got, end := take(t, s, State{}, s.Batches())
					if end != (State{Epoch: 1}) {
						t.Errorf("%s: epoch ends at %v", name, end)
					}
					if len(got) != s.Used() || tail != Drop && len(got) != n {
						t.Errorf("%s: %d samples, want %d", name, len(got), s.Used())
					}
					for i, v := range got {
						if v != s.Order(0).At(i) {
							t.Fatalf("%s: position %d holds %d, want %d", name, i, v, s.Order(0).At(i))
						}
					}
				}
			}
		}
	}
}

// Any sequence of kills, each resuming with another world size, batch and number of batches, gives the order of an uninterrupted run.
func TestResumeAndReshardKeepTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		n := 1 + r.IntN(60)
		tail := []Tail{Pad, Short}[r.IntN(2)]
		var got []int
		at := State{}
		for at.Epoch < 3 {
			s := Sampler{Len: n, Seed: uint64(trial), Shuffle: true, World: 1 + r.IntN(5), Batch: 1 + r.IntN(5), Tail: tail}
			part, next := take(t, s, at, 1+r.IntN(4))
			got, at = append(got, part...), next
		}
		s := Sampler{Len: n, Seed: uint64(trial), Shuffle: true, World: 1, Batch: 1, Tail: tail}
		for i, v := range got {
			if want := s.Order(i / n).At(i % n); v != want {
				t.Fatalf("trial %d, n=%d: sample number %d is %d, want %d", trial, n, i, v, want)
			}
		}
	}
}

// Skip in constant time equals stepping.
func TestSkipEqualsStepping(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s := Sampler{Len: 1 + r.IntN(50), World: 1 + r.IntN(3), Batch: 1 + r.IntN(4), Tail: Tail(r.IntN(3))}
		if s.Check() != nil {
			continue
		}
		at := State{Epoch: r.IntN(3), Consumed: int64(r.IntN(s.Len + 1))}
		n := int64(r.IntN(200))
		want := s.Normal(at)
		for range n {
			want = s.Next(want)
		}
		if got := s.Skip(at, n); got != want {
			t.Fatalf("%+v: Skip(%v, %d) = %v, want %v", s, at, n, got, want)
		}
	}
}

func TestEpochsDiffer(t *testing.T) {
	s := Sampler{Len: 1000, Seed: 9, Shuffle: true, World: 1, Batch: 1}
	same := 0
	for i := range s.Len {
		if s.Order(0).At(i) == s.Order(1).At(i) {
			same++
		}
	}
	if same > 10 {
		t.Errorf("%d of 1000 positions hold the same sample in both epochs", same)
	}
	a, b := SampleRand(1, 0, 5), SampleRand(1, 1, 5)
	if a.Uint64() == b.Uint64() {
		t.Error("a sample has the same random numbers in both epochs")
	}
}

func TestSamplerRefuses(t *testing.T) {
	for _, s := range []Sampler{
		{Len: 10, World: 2, Rank: 2, Batch: 1}, {Len: 10, World: 0, Batch: 1}, {Len: 10, World: 1},
		{World: 1, Batch: 1}, {Len: 10, World: 2, Batch: 6}, {Len: 10, World: 1, Batch: 1, Tail: 7},
	} {
		if s.Check() == nil {
			t.Errorf("%+v passes", s)
		}
	}
	if err := (Sampler{Len: 10, World: 1, Batch: 1}).CheckState(State{Consumed: 11}); err == nil {
		t.Error("a position beyond the data passes")
	}
}

func TestRandIsUniform(t *testing.T) {
	r := NewRand(8)
	const n, cells = 100000, 10
	var count [cells]int
	sum := 0.0
	for range n {
		count[r.IntN(cells)]++
		sum += r.Uniform(2, 4)
	}
	for i, c := range count {
		if c < n/cells-500 || c > n/cells+500 { // five deviations of 95
			t.Errorf("IntN: cell %d has %d of %d", i, c, n)
		}
	}
	if mean := sum / n; mean < 2.99 || mean > 3.01 { // five deviations of 0.0018
		t.Errorf("Uniform(2,4) has mean %v", mean)
	}
}

func BenchmarkOrder(b *testing.B) {
	o := Sampler{Len: 1281167, Shuffle: true}.Order(3)
	for i := 0; b.Loop(); i++ {
		o.At(i % 1281167)
	}
}
