package predict_test

import (
	"context"
	"errors"
	"image"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/usercache"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/tune"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/predict"
)

// kindsOf opens a checkpoint, which compiles the largest batch, and counts its kernels.
func kindsOf(t *testing.T, dir string, batch int, opts ...predict.Option) map[string]int {
	t.Helper()
	m, err := predict.Open(dir, append([]predict.Option{predict.WithBatch(batch)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return m.Kinds()
}

// logitsOf opens a checkpoint and computes the logits of some pictures.
func logitsOf(t *testing.T, dir string, pictures []*image.Gray, opts ...predict.Option) (logits []float32, kinds map[string]int) {
	t.Helper()
	m, err := predict.Open(dir, append([]predict.Option{predict.WithBatch(len(pictures))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var in []predict.Input
	for _, p := range pictures {
		in = append(in, predict.Image(p))
	}
	results, err := m.Predict(context.Background(), in...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		logits = append(logits, r.Logits...)
	}
	return logits, m.Kinds()
}

// Convolutions take in the normalisations behind them. The logits are as near to those that the plain-Go device computes in float64, without folding, as they
// are without it: within 3e-6 of the largest one.
func TestFoldedLogits(t *testing.T) {
	dir, _ := trained(t, resnetModel, "resnet")
	pictures, _ := held(t, 8)
	plain := predict.WithConvAlgorithm(train.DirectConv)
	truth, _ := logitsOf(t, dir, pictures, predict.WithDevice("ref", 1, nil), predict.WithoutFolding())
	largest := 0.0
	for _, v := range truth {
		largest = max(largest, math.Abs(float64(v)))
	}
	for name, o := range map[string]struct {
		opts  []predict.Option
		norms int
		bound float64
	}{
		"cpu, not folded": {[]predict.Option{predict.WithoutFolding(), plain}, 12, 3e-6},
		"cpu, folded":     {[]predict.Option{plain}, 0, 3e-6},
		"ref, folded":     {[]predict.Option{predict.WithDevice("ref", 1, nil)}, 0, 1e-6},
		"cpu, Winograd":   {[]predict.Option{predict.WithConvAlgorithm(train.WinogradConv)}, 0, 2e-5},
		"cpu, bf16":       {[]predict.Option{predict.WithCompute(npu.BF16), plain}, 0, 3e-2},
	} {
		got, kinds := logitsOf(t, dir, pictures, o.opts...)
		worst := 0.0
		for i, v := range got {
			worst = max(worst, math.Abs(float64(v)-float64(truth[i])))
		}
		t.Logf("%s: %.2g of the largest logit, %v", name, worst/largest, kinds)
		if !(worst <= o.bound*largest) {
			t.Errorf("%s: logits differ by %g of the largest one, want %g", name, worst/largest, o.bound)
		}
		if kinds[npu.BatchNormInfer] != o.norms {
			t.Errorf("%s: %d batch normalisations, want %d: %v", name, kinds[npu.BatchNormInfer], o.norms, kinds)
		}
	}
}

// stopwatch makes an algorithm the fastest one, and counts contests.
func stopwatch(dir, fast string, held *int) predict.Option {
	place := usercache.Place{Base: dir, Own: []string{"gotrain"}}
	if dir == "" {
		place = usercache.Place{Err: errors.New("no home")}
	}
	return predict.WithTuner(tune.Tuner{Places: []usercache.Place{place}, Time: func(_ context.Context, c tune.Contest) (ts []tune.Timing, err error) {
		*held++
		for _, e := range c.Entrants {
			took := 2 * time.Millisecond
			if e.Name == fast {
				took = time.Millisecond
			}
			ts = append(ts, tune.Timing{Name: e.Name, Best: took})
		}
		return ts, nil
	}})
}

// Predictions take the algorithms of the checkpoint, and otherwise those that are the fastest ones on this machine, which is measured once. What cannot be kept
// is not measured.
func TestAlgorithmsOfPredictions(t *testing.T) {
	cache, held := t.TempDir(), 0
	unknown, _ := trained(t, resnetModel, "resnet") // by direct convolutions, so its checkpoint says nothing
	first := kindsOf(t, unknown, 4, stopwatch(cache, npu.Winograd4, &held))
	if first[npu.Winograd4] == 0 {
		t.Skip("this machine has no Winograd convolutions")
	}
	if held == 0 {
		t.Error("nothing was measured")
	}
	before := held
	if again := kindsOf(t, unknown, 4, stopwatch(cache, npu.Direct, &held)); held != before || again[npu.Winograd4] != first[npu.Winograd4] {
		t.Errorf("the second time %d contests, %v", held-before, again)
	}
	held = 0
	if got := kindsOf(t, unknown, 4, stopwatch("", npu.Winograd4, &held)); held != 0 || got[npu.Winograd4] != 0 {
		t.Errorf("without a place %d contests, %v", held, got)
	}
	known, _ := trained(t, resnetModel, "resnet", train.WithConvAlgorithm(train.WinogradConv), train.WithEval(clothes(t, "test"), 4),
		func(c *train.Config) { c.EvalBatch = 4 })
	if got := kindsOf(t, known, 4, stopwatch(t.TempDir(), npu.Direct, &held)); got[npu.Winograd4] != first[npu.Winograd4] || held != 0 {
		t.Errorf("as in the training: %v, want %v; %d contests", got, first, held)
	}
	if got := kindsOf(t, known, 4, predict.WithConvAlgorithm(train.DirectConv)); got[npu.Winograd4] != 0 {
		t.Errorf("direct: %v", got)
	}
	if _, err := predict.Open(known, predict.WithConvAlgorithm("fft")); err == nil || !strings.Contains(err.Error(), "hint: use auto, direct or winograd") {
		t.Errorf("an unknown algorithm: %v", err)
	}
}
