package train

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
)

func withEMA(decay float64, warmup bool) Option {
	return func(c *Config) { c.Optim.EMA = optim.EMA{Decay: decay, Warmup: warmup} }
}

// tensorsOf reads a file of a checkpoint.
func tensorsOf(t *testing.T, dir, name, file string) map[string][]float32 {
	t.Helper()
	ck, err := checkpoint.New(checkpoint.OS{}, dir, 0).Load(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	f, out := ck.File(file), map[string][]float32{}
	if f == nil {
		t.Fatalf("%s has no %s", name, file)
	}
	for _, x := range f.Tensors() {
		v, err := f.Float32s(x.Name)
		if err != nil {
			t.Fatal(err)
		}
		out[x.Name] = append([]float32(nil), v...)
	}
	return out
}

// The model file of a checkpoint holds the average of weights and running statistics after each step, the raw file those that training continues with;
// evaluation uses the average.
func TestAverageOfWeights(t *testing.T) {
	const steps, decay = 6, 0.7
	for _, ranks := range []int{1, 2} {
		for name, more := range map[string]Option{"": func(*Config) {}, "clipped": WithClipNorm(1), "accumulated": WithAccumulate(2)} {
			dir := t.TempDir()
			opts := func(int) []Option {
				return append(small(t, dir, steps), WithCheckpoints(dir, 1), func(c *Config) { c.KeepLast = 10 }, withEMA(decay, false), more)
			}
			res, errs := together(t, ranks, opts, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			var want map[string][]float64
			for step := 1; step <= steps; step++ {
				raw := tensorsOf(t, dir, stepName(step), RawFile)
				if want == nil {
					want = map[string][]float64{}
				}
				for k, v := range raw {
					for i, x := range v {
						if step == 1 {
							want[k] = append(want[k], float64(x))
							continue
						}
						want[k][i] = decay*want[k][i] + (1-decay)*float64(x)
					}
				}
				got := tensorsOf(t, dir, stepName(step), checkpoint.ModelFile)
				if len(got) != len(raw) || len(got) != 7 {
					t.Fatalf("%d tensors in the model file, %d in the raw one", len(got), len(raw))
				}
				for k, v := range got {
					for i, x := range v {
						if d := math.Abs(float64(x) - want[k][i]); d > 1e-6*(1+math.Abs(want[k][i])) {
							t.Fatalf("%s ranks %d step %d: %s[%d] is %g, want %g", name, ranks, step, k, i, x, want[k][i])
						}
					}
				}
			}
			// The checkpoint evaluates like the run did.
			out, errs := evaluateOn(t, ranks, WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 0),
				WithInitFrom(filepath.Join(dir, stepName(steps)), false), withEMA(decay, false))
			if err := errors.Join(errs...); err != nil || math.Abs(out[0]["loss"]-res[0].Eval["loss"]) > 1e-6 {
				t.Errorf("%s ranks %d: the checkpoint has loss %v, the run had %v: %v", name, ranks, out[0], res[0].Eval, err)
			}
		}
	}
}

func stepName(step int) string {
	return "step-" + string([]byte{'0', '0', '0', '0', '0', '0', byte('0' + step/10), byte('0' + step%10)})
}

// Stopped and resumed, a run with an average ends with the same bits: weights, averages, and both of each rank's statistics.
func TestAverageResumesBitEqual(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for _, device := range []string{"ref", "cpu"} {
			if device == "cpu" {
				if d, err := npu.Open("cpu", npu.Options{Threads: 1}); err != nil {
					t.Log(err)
					continue
				} else {
					d.Close()
				}
			}
			opts := func(dir string) func(int) []Option {
				return func(int) []Option { return append(small(t, dir, 10), withEMA(0.9, true), WithDevice(device, 1)) }
			}
			whole, halves := t.TempDir(), t.TempDir()
			if _, errs := together(t, ranks, opts(whole), nil); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
			_, errs := together(t, ranks, opts(halves), func(tr *Trainer, _, step int) {
				if step == 5 {
					tr.Stop()
				}
			})
			if !errors.Is(errs[0], ErrStopped) {
				t.Fatal(errs)
			}
			if _, errs := together(t, ranks, opts(halves), nil); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
			files := []string{checkpoint.ModelFile, RawFile, checkpoint.OptimizerFile}
			if ranks > 1 {
				files = append(files, RankFile)
			}
			for _, f := range files {
				a, err1 := os.ReadFile(filepath.Join(whole, "step-00000010", f))
				b, err2 := os.ReadFile(filepath.Join(halves, "step-00000010", f))
				if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
					t.Errorf("%d ranks on %s: %s differs: %v", ranks, device, f, err)
				}
			}
		}
	}
}

// A run may begin to average later, and stop doing so: training itself does not change.
func TestAverageOnAndOff(t *testing.T) {
	plain := t.TempDir()
	want, errs := together(t, 2, func(int) []Option { return small(t, plain, 8) }, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, first := range []bool{true, false} {
		dir := t.TempDir()
		opts := func(steps int, on bool) func(int) []Option {
			return func(int) []Option {
				o := small(t, dir, steps)
				if on {
					o = append(o, withEMA(0.9, false))
				}
				return o
			}
		}
		if _, errs := together(t, 2, opts(4, first), nil); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		got, errs := together(t, 2, opts(8, !first), nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got[0].Loss != want[0].Loss {
			t.Errorf("averaging first %t: loss %v, want %v", first, got[0].Loss, want[0].Loss)
		}
	}
}

// Evaluate uses the average, also of a checkpoint that a run resumes from.
func TestEvaluateOfAResumedAverage(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		res, errs := together(t, ranks, func(int) []Option { return append(small(t, dir, 8), withEMA(0.9, false)) }, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		out, errs := evaluateOn(t, ranks, WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 0), withEMA(0.9, false),
			func(c *Config) { c.ResumeFrom = filepath.Join(dir, stepName(8)) })
		if err := errors.Join(errs...); err != nil || math.Abs(out[0]["loss"]-res[0].Eval["loss"]) > 1e-6 {
			t.Errorf("%d ranks: %v, the run had %v: %v", ranks, out[0], res[0].Eval, err)
		}
	}
}
