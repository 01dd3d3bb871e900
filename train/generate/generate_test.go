package generate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/generate"
)

// file is a safetensors file as weights.
type file struct{ *safetensors.File }

func (f file) Shape(name string) (shape []int, ok bool) {
	t, ok := f.Lookup(name)
	for _, n := range t.Shape {
		shape = append(shape, int(n))
	}
	return shape, ok
}

func (f file) Read(name string, dst []float32) error {
	v, err := f.Float32s(name)
	copy(dst, v)
	return err
}

// stories opens stories260k, which comes with the recipes.
func stories(t testing.TB) (file, llama.Config) {
	f, err := safetensors.Open(filepath.FromSlash("../../recipes/data/stories260k/model.safetensors"))
	check(t, err)
	t.Cleanup(func() { f.Close() })
	c, err := llama.Named("stories260k")
	check(t, err)
	return file{f}, c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// greedy is PyTorch's output in float64.
func greedy(t testing.TB) []int32 {
	raw, err := os.ReadFile(filepath.FromSlash("../../graph/models/llama/testdata/stories260k/reference.json"))
	check(t, err)
	var ref struct {
		IDs []int32 `json:"greedy_ids"`
	}
	check(t, json.Unmarshal(raw, &ref))
	return ref.IDs
}

func open(t testing.TB, o generate.Options) *generate.Generator {
	t.Helper()
	w, c := stories(t)
	g, err := generate.New(w, c, o)
	if err != nil && strings.Contains(err.Error(), "onednn") {
		t.Skip(err)
	}
	check(t, err)
	t.Cleanup(func() { check(t, g.Close()) })
	return g
}

func write(t testing.TB, g *generate.Generator, s generate.Sampling, limit int, prompts ...[]int32) [][]int32 {
	t.Helper()
	out := make([][]int32, len(prompts))
	_, err := g.Run(context.Background(), prompts, s, limit, func(i int, id int32) { out[i] = append(out[i], id) })
	check(t, err)
	return out
}

// The story that PyTorch generates, token by token, on both devices.
func TestGreedyStory(t *testing.T) {
	want := greedy(t)
	for _, dev := range []string{"ref", "cpu"} {
		g := open(t, generate.Options{Device: dev, Threads: 1})
		if got := write(t, g, generate.Sampling{}, 200, want[:1])[0]; !slices.Equal(got, want[1:]) {
			t.Errorf("%s: got %v, want %v", dev, got, want[1:])
		}
	}
}

// A device whose memory the host cannot access writes the same story.
func TestSeparateMemory(t *testing.T) {
	want := greedy(t)
	g := open(t, generate.Options{Device: "ref", Threads: 1, Texts: 2, Chunk: 7, Room: 64, Extra: map[string]string{"memory": "strict"}})
	got := write(t, g, generate.Sampling{}, 20, want[:10], want[:1])
	if !slices.Equal(got[0], want[10:30]) || !slices.Equal(got[1], want[1:21]) {
		t.Errorf("got %v", got)
	}
}

// A prompt is continued like a text that the model generated itself, in chunks of any size, and alongside other texts.
func TestPrompts(t *testing.T) {
	want := greedy(t)
	for _, chunk := range []int{1, 7, 16, 64} {
		g := open(t, generate.Options{Threads: 1, Texts: 3, Chunk: chunk, Room: 128})
		got := write(t, g, generate.Sampling{}, 20, want[:40], want[:1], want[:65])
		for i, n := range []int{40, 1, 65} {
			if !slices.Equal(got[i], want[n:n+20]) {
				t.Errorf("chunks of %d, text %d: got %v, want %v", chunk, i, got[i], want[n:n+20])
			}
		}
		// A Generator can be used again.
		if got := write(t, g, generate.Sampling{}, 5, want[:3])[0]; !slices.Equal(got, want[3:8]) {
			t.Errorf("second run: %v", got)
		}
	}
}

// bf16 keeps the first sentence of the story.
func TestBF16(t *testing.T) {
	want := greedy(t)
	g := open(t, generate.Options{Threads: 1, Compute: npu.BF16})
	if got := write(t, g, generate.Sampling{}, 12, want[:1])[0]; !slices.Equal(got, want[1:13]) {
		t.Errorf("got %v, want %v", got, want[1:13])
	}
}

// f16 keeps more digits than bf16: the first sentences are the same, and a device that does not compute in it is named.
func TestF16(t *testing.T) {
	want := greedy(t)
	g := open(t, generate.Options{Device: "ref", Threads: 1, Compute: npu.F16})
	if got := write(t, g, generate.Sampling{}, 30, want[:1])[0]; !slices.Equal(got, want[1:31]) {
		t.Errorf("got %v, want %v", got, want[1:31])
	}
	w, c := stories(t)
	if _, err := generate.New(w, c, generate.Options{Device: "test-without-f16", Compute: npu.F16}); err == nil ||
		!strings.Contains(err.Error(), "does not compute in f16; it has bf16, f32") {
		t.Error(err)
	}
}

func init() {
	npu.Register("test-without-f16", -1, func(o npu.Options) (npu.Device, error) {
		o.Compute = npu.Invalid
		return ref.Open(o)
	})
}

func TestLimits(t *testing.T) {
	want := greedy(t)
	g := open(t, generate.Options{Threads: 1, Room: 10})
	if got := write(t, g, generate.Sampling{}, 100, want[:4])[0]; len(got) != 7 { // six fit, the seventh need not be read
		t.Errorf("%d tokens in a room of 10 behind a prompt of 4", len(got))
	}
	if got := write(t, g, generate.Sampling{}, 0, want[:4])[0]; got != nil {
		t.Errorf("%v with a limit of 0", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	_, err := g.Run(ctx, [][]int32{want[:1]}, generate.Sampling{}, 9, func(int, int32) {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 || err != context.Canceled {
		t.Errorf("cancelled: %d tokens, %v", n, err)
	}
}

// The same seed gives the same text, even alongside another one; another seed does not.
func TestSeeds(t *testing.T) {
	g := open(t, generate.Options{Threads: 1, Texts: 2, Room: 64})
	s := generate.Sampling{Temperature: 1, TopP: 0.9, TopK: 100, Seed: 7}
	one := write(t, g, s, 30, []int32{1})[0]
	two := write(t, g, s, 30, []int32{1}, []int32{1})
	if !slices.Equal(one, two[0]) || slices.Equal(two[0], two[1]) {
		t.Errorf("alone %v, together %v", one, two)
	}
	s.Seed = 8
	if again := write(t, g, s, 30, []int32{1})[0]; slices.Equal(one, again) {
		t.Error("another seed wrote the same text")
	}
}

func TestMistakes(t *testing.T) {
	w, c := stories(t)
	g := open(t, generate.Options{Threads: 1, Room: 8})
	for want, run := range map[string]func() error{
		"prompt 0 is empty": func() error { _, err := g.Run(t.Context(), [][]int32{{}}, generate.Sampling{}, 1, nil); return err },
		"2 prompts, but room for only 1": func() error {
			_, err := g.Run(t.Context(), [][]int32{{1}, {1}}, generate.Sampling{}, 1, nil)
			return err
		},
		"token 1 is 512, outside": func() error {
			_, err := g.Run(t.Context(), [][]int32{{1, 512}}, generate.Sampling{}, 1, nil)
			return err
		},
		"there is room for only 8": func() error {
			_, err := g.Run(t.Context(), [][]int32{make([]int32, 9)}, generate.Sampling{}, 1, nil)
			return err
		},
		"top-p is 2": func() error {
			_, err := g.Run(t.Context(), [][]int32{{1}}, generate.Sampling{TopP: 2}, 1, nil)
			return err
		},
		"in the model": func() error {
			c := c
			c.Hidden = 176
			_, err := generate.New(w, c, generate.Options{Threads: 1})
			return err
		},
		"generator is closed": func() error {
			g, err := generate.New(w, c, generate.Options{Threads: 1, Room: 8})
			check(t, err)
			check(t, g.Close())
			_, err = g.Run(t.Context(), [][]int32{{1}}, generate.Sampling{}, 1, nil)
			return err
		},
		"lack model.layers.5": func() error {
			c := c
			c.Layers = 6
			_, err := generate.New(w, c, generate.Options{Threads: 1})
			return err
		},
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A profile has the kernels of every step but those of the prompt, and every step has the same.
func TestProfile(t *testing.T) {
	prompt := []int32{1, 403, 407}
	g := open(t, generate.Options{Device: "ref", Room: 16, Profile: true})
	for range 2 { // each run begins anew
		st, err := g.Run(t.Context(), [][]int32{prompt}, generate.Sampling{}, 5, func(int, int32) {})
		check(t, err)
		steps := st.ByStep()
		if st.Steps != 4 || len(steps) != 4 || len(steps[0])*4 != len(st.Kernels) {
			t.Fatalf("%d steps, %d kernels in %d steps", st.Steps, len(st.Kernels), len(steps))
		}
		for i, s := range steps {
			if len(s) < 20 || s[0].Launch != steps[0][0].Launch || s[len(s)-1].Launch != steps[0][len(s)-1].Launch {
				t.Errorf("step %d has %d kernels, and others than the first", i, len(s))
			}
		}
	}
	g = open(t, generate.Options{Device: "ref", Room: 16})
	if st, err := g.Run(t.Context(), [][]int32{prompt}, generate.Sampling{}, 5, func(int, int32) {}); err != nil || st.Kernels != nil || st.ByStep() != nil {
		t.Errorf("%d kernels that nobody asked for, %v", len(st.Kernels), err)
	}
}

func Example() {
	f, err := safetensors.Open("../../recipes/data/stories260k/model.safetensors")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	c, _ := llama.Named("stories260k")
	g, err := generate.New(file{f}, c, generate.Options{Device: "ref", Room: 16})
	if err != nil {
		panic(err)
	}
	defer g.Close()
	prompt := []int32{1, 403, 407} // the start of
	_, err = g.Run(context.Background(), [][]int32{prompt}, generate.Sampling{}, 4, func(_ int, id int32) { fmt.Print(id, " ") })
	fmt.Println(err)
	// Output: 261 378 432 383 <nil>
}
