package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/data"
)

// mislabelled gives one sample a label outside the classes.
type mislabelled struct {
	data.Source
	at    int
	label int32
}

func (s mislabelled) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	err := s.Source.Load(ctx, r, i, dst)
	if i == s.at {
		data.I32(dst[1])[0] = s.label
	}
	return err
}

func (s mislabelled) Path(i int) string { return fmt.Sprintf("/pictures/%d.jpg", i) }

// A label outside the classes is an error that names the sample and its file, in training and in evaluation; the ignore label is not.
func TestLabelOutsideTheClassesNamesTheSample(t *testing.T) {
	good := images(t, 32)
	run := func(src, eval data.Source) error {
		tr, err := New(WithModel(convnet), WithData(src, 8), WithEval(eval, 0), WithSteps(4), WithLR(0.1), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.SGD, 0)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(context.Background())
		return err
	}
	for _, label := range []int32{4, -1, 1 << 30} {
		bad := mislabelled{good, 13, label}
		want := fmt.Sprintf("sample 13 (/pictures/13.jpg) of %s: label is %d, outside 0…3\nhint: label the model's 4 classes from 0", good.Name(), label)
		if err := run(bad, good); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rank 0 step") {
			t.Errorf("training: %v, want %q", err, want)
		}
		if err := run(good, bad); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "evaluation after step") {
			t.Errorf("evaluation: %v, want %q", err, want)
		}
	}
	if err := run(mislabelled{good, 13, data.Ignore}, good); err != nil {
		t.Errorf("a label that does not count: %v", err)
	}
}

// The error for a missing field lists the fields of the batch.
func TestWrongFieldOfABatch(t *testing.T) {
	for what, model := range map[string]Model{
		"input": func(b *graph.Builder, in Inputs) Outputs {
			loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["picture"])), in["label"])
			return Outputs{Loss: loss, Count: n}
		},
		"label": func(b *graph.Builder, in Inputs) Outputs {
			loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["image"])), in["class"])
			return Outputs{Loss: loss, Count: n}
		},
		"layer": func(b *graph.Builder, in Inputs) Outputs {
			x := nn.Conv2D{Out: 4, Kernel: 3}.Apply(b, "conv", in["pixels"])
			loss, n := b.CrossEntropy(b.GlobalAvgPool(x), in["label"])
			return Outputs{Loss: loss, Count: n}
		},
	} {
		tr, err := New(WithModel(model), WithData(images(t, 32), 8), WithSteps(1), WithLR(0.1), WithDevice("ref", 1), WithOptimizer(optim.Default(optim.SGD, 0)))
		if err == nil {
			_, err = tr.Run(context.Background())
		}
		if want := "use the fields of a batch as the inputs of the model: image f32[2 8 8], label i32[]"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
}

// sentences are samples of six tokens; one of them has a token that is out of place.
type sentences struct {
	n, at, place int
	token        int32
	target       bool
}

func (s sentences) Name() string                 { return "sentences" }
func (s sentences) Len() int                     { return s.n }
func (s sentences) Classes() []string            { return nil }
func (s sentences) Fingerprint() (string, error) { return "sentences", nil }
func (s sentences) Fields() []data.Field {
	return []data.Field{{Name: "text", Shape: []int{6}, DType: npu.I32, Target: s.target}}
}

func (s sentences) Load(_ context.Context, _ *data.Rand, i int, dst [][]byte) error {
	t := data.I32(dst[0])
	for j := range t {
		t[j] = int32((i + j) % 5)
	}
	if i == s.at {
		t[s.place] = s.token
	}
	return nil
}

// nextToken predicts each token but the first from the one before: it indexes a table with slices of an input.
func nextToken(b *graph.Builder, in Inputs) Outputs {
	text := in["text"]
	x := b.Embedding(b.Slice(text, 1, 0, 5), b.Param("embed", []int{5, 8}, graph.Between(-1, 1)))
	logits := b.Linear(x, b.Param("head", []int{7, 8}, graph.Between(-0.1, 0.1)), nil)
	loss, n := b.CrossEntropy(logits, b.Slice(text, 1, 1, 6), graph.IgnoreIndex(6))
	return Outputs{Loss: loss, Count: n, Items: Items{Name: "tokens", PerSample: 5}}
}

func init() {
	npu.Register("test-unchecked", -1, func(o npu.Options) (npu.Device, error) {
		d, err := ref.Open(o)
		return unchecked{d}, err
	})
}

// unchecked says that it does not look at indices.
type unchecked struct{ npu.Device }

func (u unchecked) Info() npu.Info {
	i := u.Device.Info()
	i.Name, i.Unchecked = "blind", true
	return i
}

// Tokens are checked where the model uses them, also behind a slice and on a device that does not look; the error names sample and place. The last
// token is only a target, so it may be one that the table does not have.
func TestTokenOutsideTheTableNamesItsPlace(t *testing.T) {
	for _, c := range []struct {
		src  sentences
		want string
	}{
		{sentences{n: 24, at: 7, place: 5, token: 6}, ""},
		{sentences{n: 24, at: 7, place: 5, token: 4}, ""},
		{sentences{n: 24, at: 7, place: 5, token: 7}, "sample 7 of sentences: text[5] is 7, outside 0…6"},
		{sentences{n: 24, at: 7, place: 2, token: 5}, "sample 7 of sentences: text[2] is 5, outside 0…4\nhint: use the tokenizer"},
		{sentences{n: 24, at: 0, place: 0, token: -1}, "sample 0 of sentences: text[0] is -1, outside 0…4"},
		{sentences{n: 22, at: -1, target: true}, "sentences: a row that does not count has text -100"},
	} {
		for _, device := range []string{"ref", "test-unchecked"} {
			_, errs := together(t, 2, func(int) []Option {
				return []Option{WithModel(nextToken), WithData(c.src, 4), WithSteps(6), WithLR(0.1), WithDevice(device, 1),
					WithOptimizer(optim.Default(optim.SGD, 0)), func(cfg *Config) { cfg.Tail = data.Pad }}
			}, nil)
			err := errors.Join(errs...)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %+v: %v, want %q", device, c.src, err, c.want)
			}
		}
	}
}

// logged keeps what is logged until the test ends.
func logged(t *testing.T) func() string {
	var b strings.Builder
	var mu sync.Mutex
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(locked{&mu, &b}, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Indices that the model computes cannot be checked: a device that does not look is named in a warning.
func TestComputedIndicesOnADeviceThatDoesNotLook(t *testing.T) {
	model := func(b *graph.Builder, in Inputs) Outputs {
		ids := b.Cast(b.Relu(b.Slice(b.Flatten(in["image"]), 1, 0, 2)), npu.I32)
		x := b.Embedding(ids, b.Param("embed", []int{64, 4}, graph.Between(-1, 1)))
		loss, n := b.CrossEntropy(b.Mean(x, 1), in["label"])
		return Outputs{Loss: loss, Count: n}
	}
	for device, want := range map[string]bool{"ref": false, "test-unchecked": true} {
		said := logged(t)
		_, errs := together(t, 1, func(int) []Option {
			return []Option{WithModel(model), WithData(images(t, 8), 4), WithSteps(1), WithLR(0.1), WithDevice(device, 1), WithOptimizer(optim.Default(optim.SGD, 0))}
		}, nil)
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
		if got := strings.Contains(said(), "device blind does not check them"); got != want {
			t.Errorf("%s: warned: %t, %s", device, got, said())
		}
	}
}
