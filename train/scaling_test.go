package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/telemetry"
)

// scaled records what a step says about loss scaling.
type scaled struct{ steps []telemetry.Step }

func (s *scaled) Emit(e telemetry.Event) error {
	if st, ok := e.(telemetry.Step); ok {
		s.steps = append(s.steps, st)
	}
	return nil
}
func (s *scaled) Close() error { return nil }

// lines formats steps so that equal ones are equal bit by bit.
func (s *scaled) lines() []string {
	var out []string
	for _, st := range s.steps {
		out = append(out, fmt.Sprintf("loss %x norm %x %t lr %x scale %g %t skipped %t",
			st.Loss.X, st.Norm.X, st.Norm.OK, st.LR.X, st.Scale.X, st.Scale.OK, st.Skipped))
	}
	return out
}

// pattern has a letter for each step: x for a skipped one.
func (s *scaled) pattern() string {
	var b strings.Builder
	for _, st := range s.steps {
		b.WriteByte(map[bool]byte{false: '.', true: 'x'}[st.Skipped])
	}
	return b.String()
}

// dynamic is loss scaling that changes often enough for a short test.
func dynamic(init float64, interval int) Option {
	return func(c *Config) {
		s := optim.DefaultScaler()
		s.Init, s.Interval, s.Ceiling = init, interval, math.Max(init, s.Ceiling)
		c.Compute, c.Scaler = npu.F16, &s
	}
}

// halved is a schedule that falls with every update, so that a learning rate tells how many there were.
func halved(int, int) (optim.Schedule, error) { return falling{}, nil }

type falling struct{}

func (falling) LR(step int) float64 { return 0.02 / (1 + float64(step)/16) }

type still struct{}

func (still) LR(int) float64 { return 0 }

// inHalf are the options of a run in f16 on ranks; the first scales are far too large.
func inHalf(t *testing.T, opts ...Option) []Option {
	return append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(12), WithSchedule(halved), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.AdamW, 1e-3)), WithSeed(11), dynamic(1<<24, 3)}, opts...)
}

// recorded runs ranks and returns what rank 0 says of its steps.
func recorded(t *testing.T, ranks int, opts []Option, after func(tr *Trainer, rank, step int)) (*scaled, []Result, []error) {
	t.Helper()
	logs := make([]scaled, ranks)
	res, errs := together(t, ranks, func(r int) []Option { return append(append([]Option{}, opts...), WithSinks(&logs[r])) }, after)
	for r := range logs {
		if a, b := fmt.Sprint(logs[r].pattern()), logs[0].pattern(); a != b {
			t.Errorf("rank %d skips %s, rank 0 %s", r, a, b)
		}
	}
	return &logs[0], res, errs
}

// Steps whose gradients overflow are skipped on all ranks: the scale falls until they fit, rises after three good steps, and the learning rate and Adam's
// count follow updates, while steps and data follow attempts.
func TestOverflowingStepsAreSkipped(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		dir := t.TempDir()
		var weights [][]byte
		got, res, errs := recorded(t, ranks, inHalf(t, WithCheckpoints(dir, 0), WithData(images(t, 96), 6)), func(tr *Trainer, rank, step int) {
			if rank == 0 {
				weights = append(weights, append([]byte{}, tr.store.weights[0].Buf.Host()...))
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		p := got.pattern()
		if !strings.HasPrefix(p, "xxx") || !strings.Contains(p, "..") || len(p) != 12 || res[0].Steps != 12 {
			t.Fatalf("%d ranks: skipped %s", ranks, p)
		}
		scale, good, updates := float64(1<<24), 0, 0
		for i, st := range got.steps {
			if st.Scale.X != scale || math.Abs(st.LR.X-falling{}.LR(updates)) > 1e-12 {
				t.Errorf("%d ranks, step %d: scale %g, learning rate %g; want %g, %g", ranks, i+1, st.Scale.X, st.LR.X, scale, falling{}.LR(updates))
			}
			if st.Skipped != (!st.Norm.Finite()) || !st.Loss.Finite() {
				t.Errorf("%d ranks, step %d: norm %v, loss %v, skipped %t", ranks, i+1, st.Norm, st.Loss, st.Skipped)
			}
			if i > 0 && st.Skipped != (string(weights[i]) == string(weights[i-1])) {
				t.Errorf("%d ranks, step %d: skipped %t, weights unchanged %t", ranks, i+1, st.Skipped, !st.Skipped)
			}
			if st.Skipped {
				scale, good = scale/2, 0
				continue
			}
			updates++
			if good++; good == 3 {
				scale, good = scale*2, 0
			}
		}
		ck, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if st := ck.State; st.Step != 12 || st.OptimizerSteps != int64(updates) || st.Scaler.Skipped != int64(12-updates) || st.Scaler.Scale != scale ||
			st.Samples != int64(12*6*ranks) {
			t.Errorf("%d ranks, %d updates: %+v", ranks, updates, st)
		}
		ck.Close()
	}
}

// A run that is stopped anywhere, also between two skipped steps, and resumed is equal to one that was not, bit by bit, with the scale.
func TestScaledRunResumesBitEqual(t *testing.T) {
	for _, c := range []struct {
		ranks int
		rule  string
		opts  []Option
	}{
		{1, optim.AdamW, nil},
		{2, optim.LARS, []Option{WithAccumulate(2), WithClipNorm(1)}},
		{2, optim.SGD, []Option{WithClipNorm(0.5)}},
	} {
		opts := func(more ...Option) []Option {
			return append(inHalf(t, append([]Option{WithOptimizer(optim.Default(c.rule, 1e-3))}, c.opts...)...), more...)
		}
		want, all, errs := recorded(t, c.ranks, opts(), nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, stopAt := range []int{0, 2, 5, 8} {
			dir := t.TempDir()
			first, _, errs := recorded(t, c.ranks, opts(WithCheckpoints(dir, 100)), func(tr *Trainer, rank, step int) {
				if step == max(1, stopAt) && rank == c.ranks-1 {
					tr.Stop()
				}
			})
			if !errors.Is(errs[0], ErrStopped) {
				t.Fatal(errs[0])
			}
			rest, res, errs := recorded(t, c.ranks, opts(WithCheckpoints(dir, 100)), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got := append(first.lines(), rest.lines()...)
			for i, line := range want.lines() {
				if i >= len(got) || got[i] != line {
					t.Fatalf("%d ranks, %s, stopped at %d: step %d: %s, want %s", c.ranks, c.rule, stopAt, i+1, got[min(i, len(got)-1)], line)
				}
			}
			if res[0].Eval["loss"] != all[0].Eval["loss"] {
				t.Errorf("%d ranks, %s, stopped at %d: evaluation %g, want %g", c.ranks, c.rule, stopAt, res[0].Eval["loss"], all[0].Eval["loss"])
			}
		}
	}
}

// Groups, a frozen part and every rule train in f16 as they do in float32, with any scale, whichever way the batch is divided. f16 has 11 bits: over 12
// steps of a small network the losses stay within 0.02 of float32's.
func TestF16TrainsAsFloat32Does(t *testing.T) {
	for _, rule := range optim.Rules() {
		run := func(ranks, accumulate int, half Option) *scaled {
			got, _, errs := recorded(t, ranks, []Option{WithModel(grouped), threeGroups(), WithData(images(t, 96), 16/(ranks*accumulate)), WithAccumulate(accumulate),
				WithSteps(12), WithLR(0.005), WithDevice("ref", 1), WithSeed(7), WithOptimizer(optim.Default(rule, 1e-3)), WithClipNorm(5), half}, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(rule, err)
			}
			return got
		}
		want := run(1, 1, WithCompute(npu.F32))
		fixed := func(c *Config) { c.Compute, c.Scaler = npu.F16, &optim.ScalerConfig{Init: 128, MaxSkips: 1} }
		for _, division := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {2, 2}} {
			for name, half := range map[string]Option{"dynamic": dynamic(256, 100), "fixed": fixed} {
				got := run(division[0], division[1], half)
				for i, st := range got.steps {
					if w := want.steps[i]; st.Skipped || !(math.Abs(st.Loss.X-w.Loss.X) <= 0.02) || !(math.Abs(st.Norm.X-w.Norm.X) <= 0.02*w.Norm.X) {
						t.Errorf("%s, %v, %s scale: step %d: loss %g, norm %g; in f32 %g, %g", rule, division, name, i+1, st.Loss.X, st.Norm.X, w.Loss.X, w.Norm.X)
					}
				}
			}
		}
		for _, st := range want.steps {
			if st.Scale.OK {
				t.Fatal("a run in f32 reports a loss scale")
			}
		}
	}
}

// A run that cannot recover ends, on all ranks, with the reason.
func TestScaledRunThatCannotRecoverEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		opt   Option
		steps int // attempts before the end
		want  []string
	}{
		{"floor", func(c *Config) { dynamic(1<<30, 3)(c); c.Scaler.Floor = 1 << 28 }, 2, []string{"step 2", "floor 2.68435456e+08", "hint:"}},
		{"in a row", func(c *Config) { dynamic(1<<30, 3)(c); c.Scaler.MaxSkips = 3 }, 2, []string{"3 steps in a row", "loss scale 2.68435456e+08\nhint: use a smaller loss scale"}},
		{"fixed", func(c *Config) { c.Compute, c.Scaler = npu.F16, &optim.ScalerConfig{Init: 1 << 30, MaxSkips: 4} }, 3, []string{"4 steps in a row"}},
		{"forward pass", func(c *Config) {
			dynamic(16, 3)(c)
			c.Scaler.MaxSkips = 3
			c.Model = func(b *graph.Builder, in Inputs) Outputs { // 1e5 is more than f16 holds
				x := b.Affine(b.Relu(nn.Linear{Out: 8}.Apply(b, "in", b.Flatten(in["image"]))), 1, 1e5)
				loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", x), in["label"])
				return Outputs{Loss: loss, Count: n}
			}
			c.Eval = nil
		}, 2, []string{"the loss is not finite on ranks [0 1]", "after 3 skipped steps in a row", "samples of this rank: ["}},
	} {
		got, _, errs := recorded(t, 2, inHalf(t, c.opt), nil)
		for r, err := range errs {
			if launch.ExitCode(err) != launch.ExitNumerics {
				t.Errorf("%s, rank %d: exit code %d: %v", c.name, r, launch.ExitCode(err), err)
			}
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%s, rank %d: %q is not in: %v", c.name, r, w, err)
				}
			}
		}
		if len(got.steps) != c.steps {
			t.Errorf("%s: %d steps before the end: %s", c.name, len(got.steps), got.pattern())
		}
	}
}

// A sample that is not a number makes its step a skipped one. Neither the weights nor the running statistics keep anything of it, so the evaluation works.
func TestSkippedStepKeepsRunningStatistics(t *testing.T) {
	opts := inHalf(t, dynamic(256, 100), WithData(poisoned{images(t, 48), 20}, 6), WithSteps(8))
	got, res, errs := recorded(t, 1, opts, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if p := got.pattern(); strings.Count(p, "x") != 1 || got.steps[strings.Index(p, "x")].Loss.Finite() {
		t.Errorf("skipped: %s, %+v", p, got.steps)
	}
	if l := res[0].Eval["loss"]; !(l > 0 && l < 3) {
		t.Errorf("the evaluation gives %g", l)
	}
}

// The loss of an evaluation is not scaled: a run whose steps are all skipped evaluates its first weights, as float32 does to the precision of f16.
func TestEvaluationIsNotScaled(t *testing.T) {
	huge := func(c *Config) { c.Compute, c.Scaler = npu.F16, &optim.ScalerConfig{Init: 1 << 40} }
	_, half, errs := recorded(t, 1, inHalf(t, huge, WithSteps(2)), nil)
	plain := func(c *Config) {
		c.Compute, c.Scaler = npu.F32, nil
		c.Schedule = func(int, int) (optim.Schedule, error) { return still{}, nil }
	}
	_, full, more := recorded(t, 1, inHalf(t, plain, WithSteps(2)), nil)
	if err := errors.Join(append(errs, more...)...); err != nil {
		t.Fatal(err)
	}
	if a, b := half[0].Eval["loss"], full[0].Eval["loss"]; !(math.Abs(a-b) < 0.05) || a == 0 {
		t.Errorf("evaluation: %g in f16, %g in f32", a, b)
	}
}

// A step in f16 that is abandoned leaves the scale alone, wherever the request arrives.
func TestAbandonedScaledStepLeavesNothing(t *testing.T) {
	for _, at := range []int{1, 8} { // among skipped steps, and among good ones
		for _, s := range []stage{enqueued, voted, reduced} {
			want, _, errs := recorded(t, 2, inHalf(t), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			dir, first := t.TempDir(), &scaled{}
			_, _, errs = ranksWith(t, 2, inHalf(t, WithCheckpoints(dir, 100)), func(tr *Trainer, rank int) {
				if tr.holdAfter = 0; rank == 0 {
					tr.cfg.Sinks = append(tr.cfg.Sinks, first)
				}
				tr.within = func(now stage) {
					if tr.step == at && now == s && rank == 1 {
						tr.Abandon()
					}
				}
			})
			var stop *StopError
			if !errors.As(errs[0], &stop) || !stop.Abandoned || stop.Step != at {
				t.Fatal(errs)
			}
			rest, _, errs := recorded(t, 2, inHalf(t, WithCheckpoints(dir, 100)), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got := append(first.lines(), rest.lines()...)
			if w := want.lines(); strings.Join(got, "\n") != strings.Join(w, "\n") {
				t.Errorf("abandoned in step %d, stage %d:\n%s\nwant\n%s", at+1, s, strings.Join(got, "\n"), strings.Join(w, "\n"))
			}
		}
	}
}

func init() {
	npu.Register("test-without-f16", -1, func(o npu.Options) (npu.Device, error) {
		o.Compute = npu.Invalid
		return ref.Open(o)
	})
}

// A device that does not compute in f16 is named, with what it has.
func TestDeviceWithoutF16(t *testing.T) {
	tr, err := New(inHalf(t, WithDevice("test-without-f16", 1))...)
	if err == nil {
		_, err = tr.Run(context.Background())
	}
	for _, w := range []string{"device ref", "does not compute in f16", "it has bf16, f32", "hint:"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
		}
	}
	if launch.ExitCode(err) != launch.ExitUnavailable {
		t.Errorf("exit code %d", launch.ExitCode(err))
	}
}

// A run in f32 may be continued in f16, also from a checkpoint of before there was loss scaling: it starts with the first scale.
func TestF32RunGoesOnInF16(t *testing.T) {
	dir := t.TempDir()
	plain := func(c *Config) { c.Compute, c.Scaler = npu.F32, nil }
	if _, _, errs := recorded(t, 1, inHalf(t, plain, WithSteps(3), WithCheckpoints(dir, 0)), nil); errs[0] != nil {
		t.Fatal(errs[0])
	}
	got, _, errs := recorded(t, 1, inHalf(t, dynamic(64, 2), WithSteps(8), WithCheckpoints(dir, 0)), nil)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	var scales []float64
	for _, st := range got.steps {
		scales = append(scales, st.Scale.X)
	}
	if fmt.Sprint(scales) != "[64 64 128 128 256]" {
		t.Errorf("scales %v", scales)
	}
}
