package generate_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/generate"
)

// spoilt has a last layer of its own, and a NaN in the embedding of one token, which shows once that has been read.
type spoilt struct {
	file
	id int32
}

func (s spoilt) tied(name string) string {
	return strings.Replace(name, "lm_head", "model.embed_tokens", 1)
}

func (s spoilt) Shape(name string) ([]int, bool) { return s.file.Shape(s.tied(name)) }

func (s spoilt) Read(name string, dst []float32) error {
	err := s.file.Read(s.tied(name), dst)
	if name == "model.embed_tokens.weight" {
		dst[int(s.id)*len(dst)/512] = float32(math.NaN())
	}
	return err
}

// A logit that is not a number ends the run behind the tokens before it, and every run alike: steps that were enqueued ahead leave nothing behind.
func TestFailureInAStep(t *testing.T) {
	want := greedy(t)
	w, c := stories(t)
	c.Tied = false
	for _, memory := range []string{"", "strict"} {
		g, err := generate.New(spoilt{w, want[9]}, c, generate.Options{Device: "ref", Threads: 1, Room: 32, Extra: map[string]string{"memory": memory}})
		check(t, err)
		for range 2 {
			var got []int32
			st, err := g.Run(context.Background(), [][]int32{want[:1]}, generate.Sampling{}, 20, func(_ int, id int32) { got = append(got, id) })
			if !slices.Equal(got, want[1:10]) || st.Written != 9 || st.Steps != 9 {
				t.Errorf("%d tokens in %d steps: %v, want %v", st.Written, st.Steps, got, want[1:10])
			}
			if err == nil || !strings.Contains(err.Error(), "is not a number") || !strings.Contains(err.Error(), "(text 0, after 10 tokens)") {
				t.Errorf("got %v", err)
			}
		}
		check(t, g.Close())
	}
}

// A run that was cancelled does not change the next one, nor does a text that ends before another.
func TestRunAfterCancelledRun(t *testing.T) {
	want := greedy(t)
	g := open(t, generate.Options{Threads: 1, Texts: 2, Room: 64})
	for stop := 1; stop < 4; stop++ {
		ctx, cancel := context.WithCancel(context.Background())
		n := 0
		_, err := g.Run(ctx, [][]int32{want[:5]}, generate.Sampling{}, 20, func(int, int32) {
			if n++; n == stop {
				cancel()
			}
		})
		if n != stop || err != context.Canceled {
			t.Errorf("cancelled after %d tokens: %d, %v", stop, n, err)
		}
		got := write(t, g, generate.Sampling{}, 30, want[:60], want[:1]) // room for four and the last
		if !slices.Equal(got[0], want[60:65]) || !slices.Equal(got[1], want[1:31]) {
			t.Errorf("after a cancelled run: %v", got)
		}
	}
}
