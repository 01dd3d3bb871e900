package generate

import (
	"math"
	"strings"
	"testing"
)

// draws counts what comes out of n draws.
func draws(t *testing.T, s Sampling, logits []float32, n int) []float64 {
	t.Helper()
	m, count := newSampler(s, 0), make([]float64, len(logits))
	for range n {
		id, err := m.pick(logits)
		if err != nil {
			t.Fatal(err)
		}
		count[id] += 1 / float64(n)
	}
	return count
}

// Frequencies against the softmax by hand; 20000 draws have a deviation below 0.0036.
func TestDistribution(t *testing.T) {
	logits := []float32{1, 3, 2, 0} // softmax 0.0871 0.6439 0.2369 0.0321
	soft := func(temp float64, keep ...int) []float64 {
		p, sum := make([]float64, 4), 0.0
		for _, i := range keep {
			p[i] = math.Exp(float64(logits[i]) / temp)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	for name, c := range map[string]struct {
		s    Sampling
		want []float64
	}{
		"greedy":        {Sampling{TopP: 0.1}, []float64{0, 1, 0, 0}},
		"all":           {Sampling{Temperature: 1}, soft(1, 0, 1, 2, 3)},
		"hot":           {Sampling{Temperature: 2}, soft(2, 0, 1, 2, 3)},
		"top-k":         {Sampling{Temperature: 1, TopK: 2}, soft(1, 1, 2)},
		"top-p":         {Sampling{Temperature: 1, TopP: 0.9}, soft(1, 0, 1, 2)},
		"top-p of one":  {Sampling{Temperature: 1, TopP: 0.5}, soft(1, 1)},
		"both":          {Sampling{Temperature: 1, TopK: 3, TopP: 0.7}, soft(1, 1, 2)},
		"k beyond all":  {Sampling{Temperature: 1, TopK: 99}, soft(1, 0, 1, 2, 3)},
		"top-k of one":  {Sampling{Temperature: 5, TopK: 1}, soft(1, 1)},
		"almost greedy": {Sampling{Temperature: 1e-4}, []float64{0, 1, 0, 0}},
	} {
		got := draws(t, c.s, logits, 20000)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 0.018 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

func TestTiesAndBadLogits(t *testing.T) {
	s := newSampler(Sampling{}, 0)
	if id, err := s.pick([]float32{0, 2, 2}); id != 1 || err != nil {
		t.Errorf("a tie gives %d, %v", id, err)
	}
	if _, err := s.pick([]float32{0, float32(math.NaN())}); err == nil || !strings.Contains(err.Error(), "token 1") {
		t.Errorf("got %v", err)
	}
	inf := float32(math.Inf(-1))
	if _, err := s.pick([]float32{inf, inf}); err == nil {
		t.Error("no token is possible, and one was chosen")
	}
	if err := (Sampling{Temperature: -1, TopK: -1, TopP: 2}).Check(); err == nil || strings.Count(err.Error(), ";") != 2 {
		t.Errorf("got %v", err)
	}
}

// The largest logit at every place of vocabularies of every remainder, twice: the first one counts. A NaN at any place is found.
func TestLikeliestAtEveryPlace(t *testing.T) {
	for n := 1; n <= 35; n++ {
		for at := range n {
			logits := make([]float32, n)
			for i := range logits {
				logits[i] = -3
			}
			logits[at], logits[n-1] = 2, 2
			if best, top, err := likeliest(logits); best != at || top != 2 || err != nil {
				t.Fatalf("%d logits, the largest at %d: got %d, %g, %v", n, at, best, top, err)
			}
			logits[at] = float32(math.NaN())
			if _, _, err := likeliest(logits); err == nil {
				t.Fatalf("%d logits: the NaN at %d is not found", n, at)
			}
		}
	}
}
