package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func mustPlan(t testing.TB, buckets, phases, groups int) *Plan {
	t.Helper()
	p, err := New(buckets, phases, groups)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanOrder(t *testing.T) {
	p := mustPlan(t, 3, 1, 1)
	if want := []Item{{0, 0}, {1, 0}, {2, 0}}; !slices.Equal(p.Lane(0), want) {
		t.Errorf("without a codec: %v, want %v", p.Lane(0), want)
	}
	p = mustPlan(t, 2, 2, 2)
	if want := []Item{{0, 0}, {1, 0}}; !slices.Equal(p.Lane(0), want) {
		t.Errorf("lane 0: %v, want %v", p.Lane(0), want)
	}
	if want := []Item{{0, 1}, {1, 1}}; !slices.Equal(p.Lane(1), want) {
		t.Errorf("lane 1: %v, want %v", p.Lane(1), want)
	}
	p = mustPlan(t, 2, 2, 1)
	if want := []Item{{0, 0}, {0, 1}, {1, 0}, {1, 1}}; !slices.Equal(p.Lane(0), want) {
		t.Errorf("one group: %v, want %v", p.Lane(0), want)
	}
}

func TestPlanRefuses(t *testing.T) {
	for want, a := range map[string][3]int{"-1 buckets": {-1, 1, 1}, "of 0 phases": {1, 0, 1}, "2 groups for 3 phases": {1, 3, 2}, "0 groups": {1, 1, 0}} {
		if _, err := New(a[0], a[1], a[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", a, err, want)
		}
	}
}

// play runs a step with events in a random order, and returns what each lane issued.
func play(t *testing.T, r *Run, rnd *rand.Rand, gated bool) [][]Item {
	p := r.Plan()
	out := make([][]Item, p.Lanes())
	var flying []Item
	waiting := rnd.Perm(p.Buckets())
	r.Begin(gated)
	done := 0
	for idle := 0; done < p.Buckets()*p.Phases(); idle++ {
		if idle > 1000*(1+p.Buckets()*p.Phases()) {
			t.Fatalf("no progress after %v", out)
		}
		switch what := rnd.IntN(4); {
		case what == 0 && len(waiting) > 0:
			r.Ready(waiting[0])
			waiting = waiting[1:]
		case what == 1 && gated:
			if slices.ContainsFunc(out, func(l []Item) bool { return len(l) > 0 }) {
				t.Fatalf("issued %v before the vote", out)
			}
			r.Open()
			gated = false
		case what == 2 && len(flying) > 0:
			i := rnd.IntN(len(flying)) // lanes overtake each other
			if first := slices.IndexFunc(flying, func(it Item) bool { return p.LaneOf(it.Phase) == p.LaneOf(flying[i].Phase) }); first < i {
				i = first
			}
			r.Done(flying[i])
			flying = slices.Delete(flying, i, i+1)
			done++
		default:
			l := rnd.IntN(p.Lanes())
			if it, ok := r.Next(l); ok {
				if it.Phase > 0 && slices.Contains(flying, Item{it.Bucket, it.Phase - 1}) {
					t.Fatalf("%v issued before the phase before was complete", it)
				}
				if it.Phase == 0 && slices.Contains(waiting, it.Bucket) {
					t.Fatalf("%v issued without gradients", it)
				}
				out[l] = append(out[l], it)
				flying = append(flying, it)
			}
		}
	}
	return out
}

func TestOrderIsEqualWhateverTheTiming(t *testing.T) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		phases := 1 + rnd.IntN(3)
		groups := phases
		if rnd.IntN(2) == 0 {
			groups = 1
		}
		p := mustPlan(t, rnd.IntN(7), phases, groups)
		r := NewRun(p)
		for range 2 { // a run serves many steps
			for l, got := range play(t, r, rnd, rnd.IntN(2) == 0) {
				if !slices.Equal(got, p.Lane(l)) {
					t.Fatalf("seed %d: lane %d issued %v, want %v", seed, l, got, p.Lane(l))
				}
			}
		}
	}
}

func TestLanesDoNotWaitForEachOther(t *testing.T) {
	r := NewRun(mustPlan(t, 2, 2, 2))
	r.Begin(false)
	r.Ready(0)
	if it, ok := r.Next(0); !ok || it != (Item{0, 0}) {
		t.Fatalf("%v %v", it, ok)
	}
	if it, ok := r.Next(1); ok {
		t.Fatalf("%v issued before its phase 0 was complete", it)
	}
	r.Done(Item{0, 0})
	if it, ok := r.Next(1); !ok || it != (Item{0, 1}) { // bucket 1 is still being computed
		t.Fatalf("phase 1 of bucket 0 waits for bucket 1: %v %v", it, ok)
	}
	if !r.Plan().Last(Item{0, 1}) || r.Plan().Last(Item{0, 0}) {
		t.Error("a bucket is reduced after its last phase")
	}
	if r.Issued(0) != 1 || r.Issued(1) != 1 {
		t.Errorf("issued %d and %d", r.Issued(0), r.Issued(1))
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	r := NewRun(mustPlan(t, 8, 2, 2))
	if n := testing.AllocsPerRun(100, func() {
		r.Begin(true)
		r.Open()
		for k := range 8 {
			r.Ready(k)
			for phase := range 2 {
				it, _ := r.Next(phase)
				r.Done(it)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
