package train

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// counting is mlp with metrics of every form.
func counting(b *graph.Builder, in Inputs) Outputs {
	w := b.Param("fc.weight", []int{4, 6}, graph.KaimingNormal(graph.FanOut))
	logits := b.Linear(in["image"], w, nil)
	loss, n := b.CrossEntropy(logits, in["label"])
	hot, _ := b.OneHot(in["label"], 4)
	return Outputs{Loss: loss, Count: n,
		Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1), "share": b.Sum(hot, 0)},
		Sums:    map[string]*graph.Node{"confusion": b.ConfusionMatrix(logits, in["label"]), "rows": n},
		Derived: map[string]func(Values) Tensor{
			"recall": func(v Values) Tensor {
				c, out := v["confusion"], make([]float64, 4)
				for i := range out {
					out[i] = c.At(i, i) / c.Row(i).Sum()
				}
				return Vector(out...)
			},
			"right": func(v Values) Tensor {
				c := v["confusion"]
				return Scalar(c.At(0, 0) + c.At(1, 1) + c.At(2, 2) + c.At(3, 3))
			},
		}}
}

func plainRun(m Model, batch, accumulate int, more ...Option) []Option {
	return append([]Option{WithModel(m), WithAccumulate(accumulate), WithLR(0.05), WithDevice("ref", 1), WithSeed(7),
		WithOptimizer(optim.Default(optim.SGD, 0)), WithSteps(6), func(c *Config) { c.Batch = batch }}, more...)
}

// seen is what OnStep reads of each step.
func seen(into *[]Values) Option {
	return WithOnStep(func(_ context.Context, v *StepView) error {
		all := Values{}
		for name := range v.t.train.values {
			x, err := v.Metric(name)
			if err != nil {
				return err
			}
			all[name] = Tensor{slices.Clone(x.Shape), slices.Clone(x.Values)}
		}
		*into = append(*into, all)
		return nil
	})
}

// Vectors and matrices are added up exactly, however a global batch is divided.
func TestTensorsOverRanksAndMicroBatches(t *testing.T) {
	src, held := noise(t, 96), noise(t, 50)
	run := func(ranks, accumulate, batch int) (steps []Values, eval Values) {
		res, errs := together(t, ranks, func(rank int) []Option {
			o := plainRun(counting, batch, accumulate, WithData(src, batch), WithEval(held, 3))
			if rank == 0 {
				o = append(o, seen(&steps))
			}
			return o
		}, nil)
		for r, err := range errs {
			if err != nil {
				t.Fatalf("rank %d of %d: %v", r, ranks, err)
			}
		}
		for _, r := range res {
			if !same(r.Values, res[0].Values, 0) || r.Eval["right"] != r.Values["right"].Item() || len(r.Eval) != 5 {
				t.Errorf("%d ranks: %v, %v, want %v", ranks, r.Values, r.Eval, res[0].Values)
			}
		}
		return steps, res[0].Values
	}
	want, wantEval := run(1, 1, 24)
	if v := want[0]; len(want) != 6 || v["confusion"].Sum() != 24 || v["rows"].Item() != 24 || v["items"].Item() != 24 || len(v) != 8 ||
		math.Abs(v["share"].Sum()-1) > 1e-12 || v["top1"].Item() != v["right"].Item()/24 || !slices.Equal(v["confusion"].Shape, []int{4, 4}) {
		t.Errorf("%d steps, the first %v", len(want), want[0])
	}
	if wantEval["confusion"].Sum() != 50 || wantEval["right"].Item()/50 != wantEval["top1"].Item() {
		t.Errorf("evaluation: %v", wantEval)
	}
	for _, d := range [][3]int{{1, 3, 8}, {2, 1, 12}, {2, 3, 4}, {3, 2, 4}} {
		got, gotEval := run(d[0], d[1], d[2])
		for i := range want {
			if !same(got[i], want[i], divisionBound) {
				t.Errorf("%v: step %d: %v, want %v", d, i+1, got[i], want[i])
			}
		}
		if !same(gotEval, wantEval, divisionBound) {
			t.Errorf("%v: evaluation %v, want %v", d, gotEval, wantEval)
		}
	}
}

// same compares results: counts exactly, losses within a bound. NaN equals NaN.
func same(a, b Values, bound float64) bool {
	return maps.EqualFunc(a, b, func(x, y Tensor) bool {
		return slices.Equal(x.Shape, y.Shape) && slices.EqualFunc(x.Values, y.Values, func(v, w float64) bool {
			return v == w || math.IsNaN(v) && math.IsNaN(w) || math.Abs(v-w) <= bound
		})
	})
}

// counted counts the reductions of host memory that are not checks or gradients: those of float64.
type counted struct {
	comm.Communicator
	votes *[]int64
}

func (c counted) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	if m.DType == npu.F64 {
		*c.votes = append(*c.votes, m.Elems)
	}
	return c.Communicator.AllReduce(ctx, m, op)
}

// All results of a step travel in its one vote, and those of an evaluation in one more.
func TestOneReductionAReport(t *testing.T) {
	votes := map[string][]int64{}
	for name, m := range map[string]Model{"scalars": mlp, "tensors": counting} {
		var mine []int64
		comms := local(t, 2)
		comms[0] = counted{comms[0], &mine}
		_, errs := runAll(t, comms, func(int) []Option { return plainRun(m, 8, 2, WithData(noise(t, 96), 8), WithEval(noise(t, 32), 6)) }, nil)
		if errs[0] != nil || errs[1] != nil {
			t.Fatal(errs)
		}
		votes[name] = mine
	}
	if a, b := votes["scalars"], votes["tensors"]; len(a) == 0 || len(a) != len(b) {
		t.Errorf("%d reductions with tensors, %d without: %v, %v", len(b), len(a), b, a)
	}
	// 2 + 2 per rank, and top1; or confusion, rows, share, top1
	if slices.Max(votes["scalars"]) != 7 || slices.Max(votes["tensors"]) != 6+16+1+4+1 {
		t.Errorf("%v", votes)
	}
}

// The log has tensors as arrays, with NaN as every other number; a large one has no values, and a warning says so.
func TestTensorsInTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	sink, err := telemetry.NewJSONL(path)
	if err != nil {
		t.Fatal(err)
	}
	m := func(b *graph.Builder, in Inputs) Outputs {
		o := counting(b, in)
		o.Sums["large"] = b.Const(npu.F32, 2, 41, 25)
		o.Sums["odd"] = b.Log(b.Affine(b.Const(npu.F32, 0, 3), 1, -1))
		if !b.Training() {
			delete(o.Sums, "odd") // an evaluation may not have it: it would not be finite
		}
		return o
	}
	tr, err := New(plainRun(m, 8, 1, WithData(noise(t, 96), 8), WithEval(noise(t, 32), 6), WithSinks(sink))...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Event   string
			Text    string
			Metrics []telemetry.Metric
			Tensors []telemetry.Tensor
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kinds[e.Event]++
		at := map[string]telemetry.Tensor{}
		for _, x := range e.Tensors {
			at[x.Name] = x
		}
		switch e.Event {
		case "step":
			if odd := at["odd"].Values; len(at) != 5 || len(odd) != 3 || !math.IsNaN(odd[2]) || at["large"].Values != nil || len(e.Metrics) != 3 ||
				!slices.Equal(at["large"].Shape, []int{41, 25}) || len(at["confusion"].Values) != 16 || len(at["recall"].Values) != 4 {
				t.Errorf("%s", line)
			}
		case "eval":
			if len(at) != 4 || len(at["large"].Values) != 1025 || !slices.Equal(at["confusion"].Values, res.Values["confusion"].Values) {
				t.Errorf("%s", line)
			}
		case "warning":
			if !strings.Contains(e.Text, "log of steps leaves out the values of large (1,025 numbers)") {
				t.Errorf("%s", line)
			}
		}
	}
	if kinds["step"] != 6 || kinds["eval"] != 1 || kinds["warning"] != 1 || !strings.Contains(string(raw), `"shape":[4,4],"values":[`) ||
		!strings.Contains(string(raw), `"values":["NaN","NaN","NaN"]`) {
		t.Errorf("%v", kinds)
	}
}

// What is wrong with the metrics of a model is found before the first step.
func TestWrongMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *graph.Builder, o *Outputs)
		want   string
	}{
		"twice":         {func(b *graph.Builder, o *Outputs) { o.Sums["top1"] = o.Count }, `"top1" is one of Outputs.Metrics and one of Outputs.Sums`},
		"reserved":      {func(b *graph.Builder, o *Outputs) { o.Sums["items"] = o.Count }, `"items" is reserved`},
		"derived clash": {func(b *graph.Builder, o *Outputs) { o.Derived["share"] = o.Derived["right"] }, `"share" of Outputs.Derived is that of another result`},
		"derived loss":  {func(b *graph.Builder, o *Outputs) { o.Derived["loss"] = o.Derived["right"] }, `"loss" of Outputs.Derived`},
		"derived blank": {func(b *graph.Builder, o *Outputs) { o.Derived["a b"] = o.Derived["right"] }, `"a b"`},
		"derived nil":   {func(b *graph.Builder, o *Outputs) { o.Derived["x"] = nil }, `Outputs.Derived["x"] is nil`},
		"derived panics": {func(b *graph.Builder, o *Outputs) {
			o.Derived["x"] = func(v Values) Tensor { return Scalar(v["confuson"].Values[0]) }
		}, "it gets the results confusion, items, loss"},
		"derived shape": {func(b *graph.Builder, o *Outputs) {
			o.Derived["x"] = func(Values) Tensor { return Tensor{Shape: []int{3}} }
		}, "0 numbers of shape [3]"},
		"integers": {func(b *graph.Builder, o *Outputs) { o.Sums["x"] = b.Const(npu.I32, 1, 3) }, "want f32"},
		"too many": {func(b *graph.Builder, o *Outputs) { o.Sums["x"] = b.Const(npu.F32, 1, 2048, 2049) }, `the most of them "x" with [2048 2049]; at most 4,194,304`},
		"none":     {func(b *graph.Builder, o *Outputs) { o.Sums["x"] = b.Const(npu.F32, 1, 0) }, "at least 1"},
		"nil":      {func(b *graph.Builder, o *Outputs) { o.Sums["x"] = nil }, "output x"},
	} {
		m := func(b *graph.Builder, in Inputs) Outputs {
			o := counting(b, in)
			c.change(b, &o)
			return o
		}
		tr, err := New(plainRun(m, 8, 1, WithData(noise(t, 32), 8))...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tr.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only a number can be monitored; one that is derived can.
func TestMonitorOfTensors(t *testing.T) {
	run := func(metric string, change func(o *Outputs)) (Result, error) {
		m := func(b *graph.Builder, in Inputs) Outputs {
			o := counting(b, in)
			change(&o)
			return o
		}
		tr, err := New(plainRun(m, 8, 1, WithData(noise(t, 96), 8), WithEval(noise(t, 32), 2), WithCheckpoints(t.TempDir(), 0),
			func(c *Config) { c.Monitor = Monitor{Metric: metric, KeepBest: true} })...)
		if err != nil {
			t.Fatal(err)
		}
		return tr.Run(t.Context())
	}
	keep := func(*Outputs) {}
	for _, name := range []string{"confusion", "share", "recall"} {
		_, err := run(name, keep)
		if launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), "has the shape [4") ||
			!strings.Contains(err.Error(), "hint: derive a number from it with Outputs.Derived; there are loss, rows, top1, right") {
			t.Errorf("%s: %v", name, err)
		}
	}
	res, err := run("right", keep)
	if err != nil || res.Best.Metric != "right" || res.Best.Value < res.Eval["right"] {
		t.Errorf("%+v, %v", res, err)
	}
	_, err = run("right", func(o *Outputs) {
		o.Derived["right"] = func(v Values) Tensor { return Scalar(math.Log(-v["rows"].Item())) }
	})
	if launch.ExitCode(err) != launch.ExitNumerics || !strings.Contains(err.Error(), `the monitored result "right" is NaN`) {
		t.Errorf("NaN is monitored: %v", err)
	}
	_, err = run("top1", func(o *Outputs) {
		o.Derived["right"] = func(v Values) Tensor { return Vector(make([]float64, 1+int(v["rows"].Item()))...) }
	})
	if err == nil || !strings.Contains(err.Error(), "on zeros the shape was") {
		t.Errorf("a shape that changes: %v", err)
	}
}

// A run that resumes has the tensors of the evaluation of its checkpoint, and what follows from them.
func TestTensorsOfACheckpoint(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		run := func(m Model) (Result, int) {
			e := evals{map[int64]float64{}}
			res, errs := together(t, ranks, func(rank int) []Option {
				o := plainRun(m, 8, 1, WithData(noise(t, 96), 8), WithEval(noise(t, 50), 3), WithCheckpoints(dir, 3))
				if rank == 0 {
					o = append(o, WithSinks(&e))
				}
				return o
			}, nil)
			for _, err := range errs {
				if err != nil {
					t.Fatal(err)
				}
			}
			return res[ranks-1], len(e.at)
		}
		first, n := run(counting)
		again, m := run(counting)
		if n != 2 || m != 0 || again.Steps != 6 || first.Values["confusion"].Sum() != 50 || !same(first.Values, again.Values, 0) {
			t.Errorf("%d ranks: %v after %d evaluations, then %v after %d", ranks, first.Values, n, again.Values, m)
		}
		other, m := run(func(b *graph.Builder, in Inputs) Outputs {
			o := counting(b, in)
			o.Sums["more"] = b.Const(npu.F32, 1, 2)
			return o
		})
		if m != 1 || other.Values["more"].Sum() == 0 {
			t.Errorf("%d ranks: a metric that the checkpoint lacks: %v after %d evaluations", ranks, other.Values, m)
		}
	}
	if (&pass{net: &network{metrics: []metric{{name: "x", shape: npu.Shape{2}}}}, results: &results{values: Values{"x": Vector(0, 0)}}}).recall(nil,
		map[string]checkpoint.Array{"x": {Shape: []int{2}, Values: make([]byte, 15)}}) {
		t.Error("an array that is too short is taken")
	}
}

// Evaluate and OnStep name what there is.
func TestValuesOfAnEvaluation(t *testing.T) {
	tr, err := New(plainRun(counting, 8, 1, WithData(noise(t, 32), 8), WithEval(noise(t, 50), 0))...)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Values() != nil {
		t.Error("there are values before the evaluation")
	}
	out, err := tr.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := tr.Values(); v["confusion"].Sum() != 50 || v["loss"].Item() != out["loss"] || out["items"] != 50 || out["confusion"] != 0 {
		t.Errorf("%v, %v", out, v)
	}
	_, errs := together(t, 1, func(int) []Option {
		return plainRun(counting, 8, 1, WithData(noise(t, 32), 8), WithOnStep(func(_ context.Context, v *StepView) error {
			if v.Metrics["rows"] != 8 || len(v.Metrics) != 3 {
				return fmt.Errorf("metrics are %v", v.Metrics)
			}
			_, err := v.Metric("confuson")
			return err
		}))
	}, nil)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), `step 1: there is no metric "confuson"`) || !strings.Contains(errs[0].Error(), "recall, right") {
		t.Error(errs[0])
	}
}

// A step with a large tensor allocates nothing of its size.
func TestTensorsAllocateNothing(t *testing.T) {
	if dev, err := npu.Open("cpu", npu.Options{Threads: 1}); err != nil {
		t.Skip("the plain-Go device allocates in its kernels, and there is no other: ", err)
	} else if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	m := func(b *graph.Builder, in Inputs) Outputs {
		o := convnet(b, in)
		o.Sums = map[string]*graph.Node{"large": b.Const(npu.F32, 2, 200, 200)}
		return o
	}
	var at [2]runtime.MemStats
	tr, err := New(WithModel(m), WithData(images(t, 96), 8), WithSteps(60), WithLR(0.01), WithDevice("cpu", 1), WithAccumulate(2),
		WithOptimizer(optim.Default(optim.SGD, 1e-4)), WithOnStep(func(_ context.Context, v *StepView) error {
			if x, err := v.Metric("large"); err != nil || x.Sum() != 2*2*40000 {
				return fmt.Errorf("%v, %w", x.Sum(), err)
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	tr.afterStep = func(step int) {
		if step == 20 || step == 60 {
			runtime.ReadMemStats(&at[step/60])
		}
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if per := (at[1].TotalAlloc - at[0].TotalAlloc) / 40; per > 64<<10 {
		t.Errorf("%d bytes a step; the tensor has 320000", per)
	}
}

// Counts stay exact in 16 bits, where a number above 256 would be rounded.
func TestConfusionIn16Bits(t *testing.T) {
	dev, err := npu.Open("cpu", npu.Options{Threads: 1})
	if err != nil {
		t.Skip(err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	constant := func(b *graph.Builder, in Inputs) Outputs {
		o := counting(b, in)
		zero := b.Linear(in["image"], b.Param("zero", []int{4, 6}, graph.Zeros()), nil) // equal logits: the first class is predicted
		loss, _ := b.CrossEntropy(zero, in["label"])
		o.Loss, o.Sums["zero"] = b.Add(o.Loss, loss), b.ConfusionMatrix(zero, in["label"])
		return o
	}
	var steps []Values
	tr, err := New(WithModel(constant), WithData(noise(t, 3000), 1500), WithSteps(1), WithLR(0.1), WithDevice("cpu", 1), WithCompute(npu.BF16),
		WithOptimizer(optim.Default(optim.SGD, 0)), seen(&steps))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := steps[0]
	if v["zero"].Sum() != 1500 || v["confusion"].Sum() != 1500 || v["right"].Item()/1500 != v["top1"].Item() {
		t.Errorf("%v", v)
	}
	for i, share := range v["share"].Values {
		if n := math.Round(1500 * share); n < 300 || v["zero"].At(i, 0) != n || v["confusion"].Row(i).Sum() != n {
			t.Errorf("class %d has %v rows: %v", i, n, v)
		}
	}
}
