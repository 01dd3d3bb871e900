package train

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/telemetry"
)

// planOf summarises a run of bnNet, whose device is said to have a peak.
func planOf(t *testing.T, world, hosts int, opts ...Option) (*Trainer, *Summary) {
	t.Helper()
	tr, err := New(append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(6), WithLR(0.01), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.AdamW, 0)), func(c *Config) { c.PeakFLOPS, c.Accumulate = 1e9, 2 }}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	s, err := tr.SummariseOn(t.Context(), world, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return tr, s
}

func TestTimeline(t *testing.T) {
	tr, _ := planOf(t, 2, 2)
	c, err := tr.timeline()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Valid(len(tr.order)); err != nil {
		t.Fatal(err)
	}
	var s Summary
	tr.predict(&s)
	if (c.End - s.Predicted).Abs() > 10 {
		t.Errorf("the backward pass ends at %v, the plan predicts %v", c.End, s.Predicted)
	}
	if c.Forward <= c.End/2 || c.Ready[0] <= c.Forward || c.Ready[len(c.Ready)-1] > c.End || c.Ready[0] == c.Ready[len(c.Ready)-1] {
		t.Errorf("two micro-batches: %+v", c) // the forward pass that counts is in the second half
	}
	tr.peak = 0
	if _, err := tr.timeline(); !errors.Is(err, errNoPeak) {
		t.Errorf("without a peak: %v", err)
	}
}

func TestMeasured(t *testing.T) {
	model := simulate.Compute{Forward: 10 * time.Millisecond, Ready: []time.Duration{12e6, 15e6, 20e6}, End: 20 * time.Millisecond, Update: 1}
	names := []string{"a", "b", "c"}
	k := telemetry.Kernels{Steps: 3, Forward: 0.1, Compute: 0.4, Update: 0.002, Exposed: 0.05, Took: 0.5,
		Ready: []telemetry.Ready{{Param: "b", At: 0.2}, {Param: "c", At: 0.4}}}
	c, err := measured(model, names, 1000, k)
	if err != nil {
		t.Fatal(err)
	}
	// a is two fifths of the way from the loss to b
	want := simulate.Compute{Forward: 1e8, Ready: []time.Duration{1.4e8, 2e8, 4e8}, End: 4e8, Update: 2e-6, Rest: 48e6}
	if c.Forward != want.Forward || c.End != want.End || math.Abs(c.Update-want.Update) > 1e-12 || (c.Rest-want.Rest).Abs() > 2 {
		t.Errorf("%+v, want %+v", c, want)
	}
	for i := range names {
		if (c.Ready[i] - want.Ready[i]).Abs() > 2 {
			t.Errorf("%s is ready at %v, want %v", names[i], c.Ready[i], want.Ready[i])
		}
	}
	k.Ready[0].At = 0.05 // before the loss: it cannot be right, and is left out
	if c, err = measured(model, names, 1000, k); err != nil || c.Valid(3) != nil || c.Ready[0] < c.Forward {
		t.Errorf("%+v %v", c, err)
	}
	k.Ready, k.Forward = nil, 0 // an older file: only totals
	if c, err = measured(model, names, 1000, k); err != nil || c.Ready[1] != 3e8 || c.Forward != 2e8 {
		t.Errorf("%+v %v", c, err)
	}
	k.Ready = []telemetry.Ready{{Param: "z", At: 0.2}}
	if _, err = measured(model, names, 1000, k); err == nil || !strings.Contains(err.Error(), "gradient z, which this model lacks") {
		t.Error(err)
	}
	if _, err = measured(model, names, 1000, telemetry.Kernels{Compute: 2, Took: 1}); err == nil {
		t.Error("a step is shorter than its computation")
	}
}

func TestPredict(t *testing.T) {
	tr, sum := planOf(t, 4, 2)
	l, err := link.Parse("1mbit,100us")
	if err != nil {
		t.Fatal(err)
	}
	n := Network{Cluster: link.Cluster{Ranks: 4, Hosts: 2, Link: l}, Compress: "none"}
	p, err := tr.Predict(sum, n)
	if err != nil {
		t.Fatal(err)
	}
	if p.Result.Exposed <= p.Bound || p.Bound <= 0 || p.Efficiency >= 1 || p.Result.Time <= p.Alone || len(p.Codecs) != len(simulate.Codecs) {
		t.Errorf("%+v", p)
	}
	if p.Best.Exposed > p.Result.Exposed || p.Best.Buckets < 1 {
		t.Errorf("the best cut exposes %v, the recipe's %v", p.Best.Exposed, p.Result.Exposed)
	}
	if a := p.Advice(); !strings.Contains(a, `comm.compress = "`) || !strings.Contains(a, "saves") {
		t.Error(a)
	}
	n.Compress = "f16"
	if f, err := tr.Predict(sum, n); err != nil || f.Result.Exposed >= p.Result.Exposed || f.Result.Exposed != p.Codecs[0].Exposed {
		t.Errorf("f16 exposes %v: %v", f.Result.Exposed, err)
	}
	n.Compress = "int3"
	if _, err := tr.Predict(sum, n); err == nil {
		t.Error("int3 is a codec")
	}
	if one, err := tr.Predict(sum, Network{Cluster: link.Cluster{Ranks: 1, Hosts: 1}}); err != nil || one.Efficiency != 1 ||
		!strings.Contains(one.Advice(), "one rank") {
		t.Errorf("%+v %v", one, err)
	}
}

// A run tells the times of its kernels, and a plan reads them.
func TestRunTellsKernels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	_, errs := together(t, 2, func(r int) []Option {
		o := []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithSteps(5), WithLR(0.01), WithDevice("ref", 1), WithOptimizer(optim.Default(optim.AdamW, 0)),
			func(c *Config) { c.Accumulate, c.BucketMB, c.FirstMB = 2, 0.0001, 0.0001 }}
		if r == 0 {
			j, err := telemetry.NewJSONL(path)
			if err != nil {
				t.Error(err)
			}
			o = append(o, WithSinks(j))
		}
		return o
	}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	k, err := telemetry.ReadKernels(path)
	if err != nil {
		t.Fatal(err)
	}
	if k.Steps != 3 || k.World != 2 || k.Accumulate != 2 || len(k.Ready) < 2 || !(k.Forward > 0) || !(k.Compute > k.Forward) || !(k.Took >= k.Compute) {
		t.Errorf("%+v", k)
	}
	tr, sum := planOf(t, 2, 2)
	n := Network{Cluster: link.Cluster{Ranks: 2, Hosts: 2, Link: link.Link{Bandwidth: 1e9}}, Measured: &k}
	p, err := tr.Predict(sum, n)
	if err != nil || !strings.Contains(p.Kernels, "measured, medians over 3 steps") || p.Alone < duration(k.Compute) {
		t.Fatalf("%+v %v", p, err)
	}
	if p.Measured == nil || p.Measured.Step != duration(k.Took) || math.Abs(p.Measured.Off) > 10 {
		t.Errorf("%+v", p.Measured)
	}
	k.World = 3
	if p, err := tr.Predict(sum, n); err != nil || p.Measured != nil {
		t.Errorf("a run of another number of ranks is compared: %+v %v", p.Measured, err)
	}
	k.Batch = 7
	if _, err := tr.Predict(sum, n); err == nil || !strings.Contains(err.Error(), "the measured run had batches of 7 x 2 a rank") {
		t.Error(err)
	}
}
