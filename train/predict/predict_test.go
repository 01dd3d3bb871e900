package predict_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/graph"
	_ "github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/graph/models/resnet"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	_ "github.com/gotrain/gotrain/recipes/data"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/predict"
)

const classes = 10

// small is the configuration of a small ResNet, which trained's checkpoint holds.
var small = resnet.Config{Blocks: [4]int{1, 1, 1, 1}, Width: 4, Classes: classes, SmallStem: true}

func resnetModel(b *graph.Builder, in train.Inputs) train.Outputs {
	return classify(b, in, resnet.Build(b, in["image"], small))
}

// linear is a model of a program's own.
func linear(b *graph.Builder, in train.Inputs) train.Outputs {
	return classify(b, in, nn.Linear{Out: classes}.Apply(b, "fc", b.Flatten(in["image"])))
}

func classify(b *graph.Builder, in train.Inputs, logits *graph.Node) train.Outputs {
	loss, n := b.CrossEntropy(logits, in["label"])
	return train.Outputs{Loss: loss, Count: n, Logits: logits, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
}

// clothes are pictures of Fashion-MNIST.
func clothes(t testing.TB, split string) *images.IDX {
	t.Helper()
	dir, err := data.Locate("fashion-mini")
	if err != nil {
		t.Fatal(err)
	}
	pictures, labels, err := images.FindIDX(dir, split)
	if err != nil {
		t.Fatal(err)
	}
	src, err := images.NewIDX(pictures, labels, images.IDXOptions{Norm: images.Norm{Mean: [3]float64{0.286}, Std: [3]float64{0.353}},
		Classes: []string{"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"}})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// trained trains a few steps and returns the folder of the checkpoint and its evaluation.
func trained(t testing.TB, m train.Model, family string, opts ...train.Option) (dir string, eval map[string]float64) {
	t.Helper()
	dir = t.TempDir()
	raw, err := json.Marshal(small)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(append([]train.Option{train.WithModel(m), train.WithData(clothes(t, "train"), 20), train.WithEval(clothes(t, "test"), 0),
		train.WithSteps(4), train.WithLR(0.05), train.WithOptimizer(optim.Default(optim.SGD, 0)), train.WithDevice("cpu", 1), train.WithCheckpoints(dir, 0),
		func(c *train.Config) {
			c.ConvAlgorithm = train.DirectConv
			if family != "" {
				c.Network = &checkpoint.Network{Family: family, Config: raw}
			}
		}}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return dir, res.Eval
}

// held are the held-out pictures as images, and their labels.
func held(t testing.TB, n int) (pictures []*image.Gray, labels []int) {
	t.Helper()
	dir, err := data.Locate("fashion-mini")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) *images.Tensor {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		x, err := images.ReadIDX(f)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	p, l, err := images.FindIDX(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	pix, lab := read(p), read(l)
	for i := range min(n, len(lab.Data)) {
		pictures = append(pictures, &image.Gray{Pix: pix.Data[i*784:][:784], Stride: 28, Rect: image.Rect(0, 0, 28, 28)})
		labels = append(labels, int(lab.Data[i]))
	}
	return pictures, labels
}

func open(t testing.TB, dir string, opts ...predict.Option) *predict.Model {
	t.Helper()
	m, err := predict.Open(dir, append([]predict.Option{predict.WithDevice("cpu", 1, nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// What a checkpoint predicts is what the trainer has evaluated: loss and accuracy of all held-out pictures, from decoded pictures and from files.
func TestPredictionsAreThoseOfTheEvaluation(t *testing.T) {
	if testing.Short() {
		t.Skip("for the race detector there is nothing in it that the other tests lack")
	}
	dir, eval := trained(t, resnetModel, "resnet")
	m := open(t, dir)
	pictures, labels := held(t, 500)
	var in []predict.Input
	for i, p := range pictures {
		if i%2 == 0 {
			in = append(in, predict.Image(p))
			continue
		}
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		in = append(in, predict.Bytes(b.Bytes()))
	}
	out, err := m.Predict(t.Context(), in...)
	if err != nil {
		t.Fatal(err)
	}
	loss, right := 0.0, 0
	for i, r := range out {
		if r.Err != nil {
			t.Fatal(i, r.Err)
		}
		loss -= math.Log(r.Probabilities()[labels[i]]) / float64(len(out))
		if r.Top(1)[0].Label == labels[i] {
			right++
		}
	}
	if d := math.Abs(loss - eval["loss"]); !(d < 1e-5*eval["loss"]) { // the trainer sums 500 losses in float32
		t.Errorf("a loss of %.9g, evaluated as %.9g", loss, eval["loss"])
	}
	if got := float64(right) / float64(len(out)); got != eval["top1"] {
		t.Errorf("%g of the pictures are right, evaluated as %g", got, eval["top1"])
	}
	falling := func(a, b predict.Class) int { return cmp.Compare(b.Probability, a.Probability) }
	if top := out[0].Top(99); len(top) != classes || !slices.IsSortedFunc(top, falling) || top[0].Name != m.Classes()[top[0].Label] {
		t.Errorf("the likeliest classes: %v", top)
	}
	if s := m.Stats(); s.Inputs != 500 || s.Compiled > 6 || s.Batches < 500/32 {
		t.Errorf("%+v", s)
	}
}

// Any number of goroutines gets what one alone gets, whatever is in the same batch; a picture that is broken fails alone.
func TestManyGoroutines(t *testing.T) {
	dir, _ := trained(t, resnetModel, "resnet")
	m := open(t, dir, predict.WithBatch(8))
	pictures, _ := held(t, 40)
	var want []predict.Result
	for _, p := range pictures {
		r, err := m.Predict(t.Context(), predict.Image(p))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, r[0])
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			in := []predict.Input{predict.Bytes([]byte("no picture")), {}, predict.File("/nowhere.png"), predict.Tensor(make([]float32, 3))}
			for i := range pictures {
				in = append(in, predict.Image(pictures[(i+g)%len(pictures)]))
			}
			out, err := m.Predict(context.Background(), in...)
			if err != nil {
				t.Error(err)
				return
			}
			for i, says := range []string{"not a JPEG, PNG or GIF", "without contents", "/nowhere.png", "3 values"} {
				if out[i].Err == nil || !strings.Contains(out[i].Err.Error(), says) || out[i].Logits != nil {
					t.Errorf("bad input %d: %v, want %q", i, out[i].Err, says)
				}
			}
			for i, r := range out[4:] {
				w := want[(i+g)%len(pictures)]
				for k, v := range r.Logits {
					if d := math.Abs(float64(v - w.Logits[k])); !(d < 1e-4) { // kernels round otherwise for another number of rows
						t.Errorf("picture %d: logit %d is %g, alone %g", i, k, v, w.Logits[k])
					}
				}
			}
		})
	}
	wg.Wait()
	if s := m.Stats(); s.Compiled > 4 { // 1, 2, 4, 8
		t.Errorf("%d programs for batches of up to 8", s.Compiled)
	}
}

// The largest batch that waits is computed at once; nothing waits for company.
func TestBatches(t *testing.T) {
	dir, _ := trained(t, linear, "")
	m := open(t, dir, predict.WithModel(linear))
	pictures, _ := held(t, 3)
	for i, p := range pictures {
		if _, err := m.Predict(t.Context(), predict.Image(p)); err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Batches != int64(i+1) || s.Filled != 0 {
			t.Errorf("%d inputs one after the other: %+v", i+1, s)
		}
	}
}

// A context that ends ends its call only; Close ends all, and neither leaves anything behind that hangs.
func TestCancelAndClose(t *testing.T) {
	dir, _ := trained(t, linear, "")
	m := open(t, dir, predict.WithModel(linear), predict.WithBatch(2), predict.WithWorkers(1))
	pictures, _ := held(t, 200)
	var in []predict.Input
	for _, p := range pictures {
		in = append(in, predict.Image(p))
	}
	done, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("gone")
	cancel(reason)
	if _, err := m.Predict(done, in...); !errors.Is(err, reason) {
		t.Errorf("cancelled before the call: %v", err)
	}
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
		if _, err := m.Predict(ctx, in...); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	if out, err := m.Predict(t.Context(), in...); err != nil || len(out) != len(in) || out[199].Err != nil { // all room is free again
		t.Error(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				out, err := m.Predict(context.Background(), in...)
				if err != nil {
					if !errors.Is(err, predict.ErrClosed) {
						t.Error(err)
					}
					return
				}
				if out[0].Err != nil {
					t.Error(out[0].Err)
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	for range 3 {
		wg.Go(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := m.Predict(context.Background(), in[0]); !errors.Is(err, predict.ErrClosed) {
		t.Error(err)
	}
}

// What a checkpoint lacks is said, with the option that provides it.
func TestWhatIsMissing(t *testing.T) {
	own, _ := trained(t, linear, "")
	old := t.TempDir()
	if _, err := checkpoint.New(checkpoint.OS{}, old, 2).Save(t.Context(), checkpoint.Content{State: checkpoint.State{Step: 3}}); err != nil {
		t.Fatal(err)
	}
	llama, _ := trained(t, linear, "llama")
	bare := func(b *graph.Builder, in train.Inputs) train.Outputs {
		o := linear(b, in)
		o.Logits = nil
		return o
	}
	wide := func(b *graph.Builder, in train.Inputs) train.Outputs {
		return train.Outputs{Logits: nn.Linear{Out: 12}.Apply(b, "fc", b.Flatten(in["image"]))}
	}
	for _, c := range []struct {
		name, dir, want string
		opts            []predict.Option
	}{
		{"a model of one's own", own, "predict.WithModel", nil},
		{"a model without logits", own, "train.Outputs.Logits", []predict.Option{predict.WithModel(bare)}},
		{"another network", own, "fc.weight is [10 784]", []predict.Option{predict.WithModel(wide)}},
		{"an old checkpoint", old, "predict.WithNetwork", nil},
		{"a Llama", llama, "gotrain generate", nil},
		{"nothing", t.TempDir(), "no checkpoint", nil},
		{"no path", filepath.Join(own, "x"), "no checkpoint", nil},
		{"a device", own, "device family \"abacus\"", []predict.Option{predict.WithModel(linear), predict.WithDevice("abacus", 0, nil)}},
		{"a size", own, "f32[1 14 14]", []predict.Option{predict.WithModel(linear), predict.WithPictures(images.Preparation{Channels: 1, Height: 14, Width: 14})}},
		{"names", own, "10 outputs for 11 classes", []predict.Option{predict.WithModel(linear), predict.WithClasses(make([]string, 11))}},
	} {
		m, err := predict.Open(c.dir, append([]predict.Option{predict.WithDevice("ref", 1, nil)}, c.opts...)...)
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// bf16 is taken from the checkpoint, and another type from the option; the reference device predicts the same.
func TestTypesAndDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("for the race detector there is nothing in it")
	}
	dir, _ := trained(t, resnetModel, "resnet", func(c *train.Config) { c.Compute = npu.BF16 })
	pictures, _ := held(t, 4)
	predictAll := func(m *predict.Model) (out [][]float32) {
		for _, p := range pictures {
			r, err := m.Predict(t.Context(), predict.Image(p))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r[0].Logits)
		}
		return out
	}
	half := open(t, dir)
	if half.Compute() != npu.BF16 {
		t.Errorf("computes in %v", half.Compute())
	}
	full := open(t, dir, predict.WithCompute(npu.F32))
	ref := open(t, dir, predict.WithDevice("ref", 1, nil), predict.WithCompute(npu.F32), predict.WithBatch(1))
	a, b, c := predictAll(half), predictAll(full), predictAll(ref)
	for i := range a {
		for k := range a[i] {
			if d := math.Abs(float64(a[i][k] - b[i][k])); !(d < 0.05) { // 8 bits of mantissa through 18 layers
				t.Errorf("picture %d: logit %d is %g in bf16, %g in f32", i, k, a[i][k], b[i][k])
			}
			if d := math.Abs(float64(c[i][k] - b[i][k])); !(d < 1e-4) {
				t.Errorf("picture %d: logit %d is %g on the reference device, %g on the CPU", i, k, c[i][k], b[i][k])
			}
		}
	}
}

// Fields are by name, and are checked.
func TestFields(t *testing.T) {
	dir, _ := trained(t, linear, "")
	m := open(t, dir, predict.WithModel(linear))
	pictures, _ := held(t, 1)
	prep, ok := m.Pictures()
	if !ok {
		t.Fatal("no preparation")
	}
	p, err := images.NewPreparer(prep)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, p.Elems())
	if err := p.Image(x, pictures[0]); err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = append(raw, byte(math.Float32bits(v)), byte(math.Float32bits(v)>>8), byte(math.Float32bits(v)>>16), byte(math.Float32bits(v)>>24))
	}
	out, err := m.Predict(t.Context(), predict.Image(pictures[0]), predict.Tensor(x), predict.Fields(map[string][]byte{"image": raw}),
		predict.Fields(map[string][]byte{"image": raw[:8]}), predict.Fields(map[string][]byte{"image": raw, "mask": nil}))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		if fmt.Sprint(out[i].Top(3)) != fmt.Sprint(out[0].Top(3)) {
			t.Errorf("input %d: %v, want %v", i, out[i].Top(3), out[0].Top(3))
		}
	}
	if out[3].Err == nil || out[4].Err == nil || !strings.Contains(out[4].Err.Error(), `"mask"`) {
		t.Error(out[3].Err, out[4].Err)
	}
}
