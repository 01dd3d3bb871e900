package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

func small(t *testing.T, dir string, steps int) []Option {
	return []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(steps), WithLR(0.02), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 1e-3)), WithSeed(11), WithCheckpoints(dir, 4)}
}

// A request in the last step ends the run before its evaluation; the next run does the evaluation, and a third has nothing left to do.
func TestStoppedInTheLastStep(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		opts := func(int) []Option { return small(t, dir, 6) }
		res, errs := together(t, ranks, opts, func(tr *Trainer, rank, step int) {
			if step == 5 && rank == ranks-1 {
				tr.Stop()
			}
		})
		if !errors.Is(errs[0], ErrStopped) || !res[0].Stopped || res[0].Steps != 6 {
			t.Fatalf("%d ranks: %+v %v", ranks, res[0], errs[0])
		}
		var last map[string]float64
		for again := range 2 {
			res, errs := together(t, ranks, opts, nil)
			if err := errors.Join(errs...); err != nil || res[0].Steps != 6 || res[0].Stopped || res[0].Eval["items"] != 21 {
				t.Fatalf("%d ranks, run %d: %+v %v", ranks, again+2, res[0], err)
			}
			if last != nil && last["loss"] != res[0].Eval["loss"] {
				t.Errorf("%d ranks: evaluations of the same weights: %v and %v", ranks, last, res[0].Eval)
			}
			last = res[0].Eval
		}
	}
}

// A finished run does nothing when started again, and continues when made longer, also on another number of ranks.
func TestFinishedRunGoesOnWhenMadeLonger(t *testing.T) {
	for _, change := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		dir := t.TempDir()
		run := func(ranks, steps int) Result {
			t.Helper()
			ran := 0
			res, errs := together(t, ranks, func(int) []Option { return small(t, dir, steps) }, func(_ *Trainer, rank, _ int) {
				if rank == 0 {
					ran++
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(change, err)
			}
			res[0].Stopped = ran > 0
			return res[0]
		}
		first := run(change[0], 5)
		if again := run(change[0], 5); again.Stopped || again.Steps != 5 || again.Eval["loss"] != first.Eval["loss"] {
			t.Errorf("%v: started again: %+v, was %+v", change, again, first)
		}
		if longer := run(change[1], 8); longer.Steps != 8 || longer.Eval["items"] != 21 || !(longer.Loss < 10) {
			t.Errorf("%v: made longer: %+v", change, longer)
		}
	}
}

func TestNonFiniteLossEndsAllRanks(t *testing.T) {
	for _, accumulate := range []int{1, 5} { // with 5, batches must return to the loader within a step
		_, errs := together(t, 2, func(int) []Option {
			return []Option{WithModel(mlp), WithData(poisoned{noise(t, 80), 37}, 4), WithAccumulate(accumulate), WithSteps(50), WithLR(0.1),
				WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1)}
		}, nil)
		culprits := 0
		for r, err := range errs {
			if launch.ExitCode(err) != launch.ExitNumerics {
				t.Errorf("rank %d: exit code %d: %v", r, launch.ExitCode(err), err)
			} else if msg := err.Error(); strings.Contains(msg, "samples of this rank") {
				culprits++
				if !strings.Contains(msg, "37") && !strings.Contains(msg, "no longer available") || strings.Count(msg, "[") != 1+strings.Count(msg,
					" 37")+strings.Count(msg, "[37") {
					t.Errorf("the message names other samples than those of the bad micro-batch: %v", err)
				}
			}
		}
		if culprits != 1 {
			t.Errorf("%d ranks say that they had the sample: %v", culprits, errs)
		}
	}
}

// unreadable fails for one sample.
type unreadable struct {
	data.Source
	index int
}

func (u unreadable) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	if i == u.index {
		return errors.New("the disk is on fire")
	}
	return u.Source.Load(ctx, r, i, dst)
}

// Whatever error one rank has, the others end too, and soon.
func TestOneFailingRankEndsAll(t *testing.T) {
	full := func(t *testing.T) string { // a directory to which nobody can write, not even root
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(path, "checkpoints")
	}
	for _, c := range []struct {
		name string
		opts func(t *testing.T, rank int) []Option
		want string
		code int // of all ranks, 0: any
		fail int // the rank that fails, blamed by the other; -1: both fail
	}{
		{"weights to start from", func(t *testing.T, rank int) []Option {
			return []Option{func(c *Config) { c.InitFrom = "/nowhere.safetensors" }} // rank 0 reads it
		}, "nowhere", 0, 0},
		{"weights on one rank only", func(t *testing.T, rank int) []Option {
			return []Option{func(c *Config) { c.InitFrom = []string{"", "/nowhere.safetensors"}[rank] }}
		}, "start of the run", 0, -1},
		{"checkpoint to go on from", func(t *testing.T, rank int) []Option {
			return []Option{func(c *Config) { c.ResumeFrom = "/nowhere" }}
		}, "nowhere", 0, 0},
		{"training sample", func(t *testing.T, rank int) []Option {
			return []Option{WithData(unreadable{images(t, 50), []int{-1, 30}[rank]}, 6)}
		}, "on fire", 0, 1},
		{"held-out sample", func(t *testing.T, rank int) []Option {
			return []Option{WithEval(unreadable{images(t, 21), []int{-1, 1}[rank]}, 2)}
		}, "on fire", 0, 1},
		{"folder that cannot be", func(t *testing.T, rank int) []Option {
			return []Option{WithCheckpoints(full(t), 0), func(c *Config) { c.Resume = false }}
		}, "not a directory", 0, 0},
		{"checkpoint that cannot be written", func(t *testing.T, rank int) []Option {
			return []Option{WithCheckpoints(t.TempDir(), 0), func(c *Config) { c.Beside = map[string][]byte{"not/plain": nil} }}
		}, "not a plain file name", launch.ExitStorage, 0},
		{"another length", func(t *testing.T, rank int) []Option { return []Option{WithSteps(6 + rank)} }, "length and intervals", 0, -1},
		{"weights that blow up", func(t *testing.T, rank int) []Option {
			return []Option{WithLR(1e38), WithOptimizer(optim.Default(optim.SGD, 1)), WithCheckpoints(t.TempDir(), 1)}
		}, "not finite", launch.ExitNumerics, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := together(t, 2, func(rank int) []Option {
				return append([]Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(12), WithLR(0.02), WithDevice("ref", 1),
					WithOptimizer(optim.Default(optim.SGD, 1e-3))}, c.opts(t, rank)...)
			}, nil)
			for r, err := range errs {
				if err == nil || c.code != 0 && launch.ExitCode(err) != c.code {
					t.Errorf("rank %d: exit code %d: %v", r, launch.ExitCode(err), err)
				}
				if c.fail >= 0 && (r == c.fail) != (launch.Blamed(err) == nil) {
					t.Errorf("rank %d blames %v: %v", r, launch.Blamed(err), err)
				}
			}
			if err := errors.Join(errs...); err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q is not in: %v", c.want, err)
			}
		})
	}
}

// A storage failure during training does not end the run; non-finite weights are never written.
func TestBrokenWeightsAreNotSaved(t *testing.T) {
	dir := t.TempDir()
	_, errs := together(t, 1, func(int) []Option {
		return append(small(t, dir, 6), WithModel(mlpImage), func(c *Config) {
			c.EvalEvery, c.SaveEvery = 0, 1
			c.Schedule = func(int, int) (optim.Schedule, error) { return blowUp{}, nil }
		})
	}, nil)
	if launch.ExitCode(errs[0]) != launch.ExitNumerics {
		t.Fatalf("exit code %d: %v", launch.ExitCode(errs[0]), errs[0])
	}
	ck, _, err := checkpoint.New(checkpoint.OS{}, dir, 2).Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	if ck.State.Step != 2 {
		t.Errorf("the newest checkpoint is of step %d, want 2, the last good one", ck.State.Step)
	}
}

// blowUp is a learning rate that ruins the weights in step 3, whose loss is still finite.
type blowUp struct{}

func (blowUp) LR(step int) float64 {
	if step == 2 {
		return 1e38 * 1e3 // larger than any float32
	}
	return 0.01
}

func mlpImage(b *graph.Builder, in Inputs) Outputs {
	loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", b.Flatten(in["image"])), in["label"])
	return Outputs{Loss: loss, Count: n}
}

// A frozen parameter and one that the loss does not reach are not changed, and are saved.
func TestFrozenAndUnreachedParametersStay(t *testing.T) {
	model := func(b *graph.Builder, in Inputs) Outputs {
		b.Param("spare", []int{3}, graph.Fixed(7))
		x := b.Mul(b.Flatten(in["image"]), b.Param("fixed", []int{128}, graph.Fixed(0.5), graph.Frozen()))
		loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "fc", x), in["label"])
		return Outputs{Loss: loss, Count: n}
	}
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		opts := func(int) []Option {
			return append(small(t, dir, 4), WithModel(model), WithOptimizer(optim.Default(optim.AdamW, 0.1)), WithGraph(graph.AllowUnreached()))
		}
		if _, errs := together(t, ranks, opts, nil); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		set, err := safetensors.OpenSet(filepath.Join(dir, "step-00000004", checkpoint.ModelFile))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		for name, want := range map[string]float32{"spare": 7, "fixed": 0.5} {
			v, err := set.Float32s(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range v {
				if x != want {
					t.Fatalf("%d ranks: %s is %v, want %v", ranks, name, x, want)
				}
			}
		}
	}
}

// Mismatched training and evaluation networks are an error that names the parameter.
func TestEvaluationNetworkMustFit(t *testing.T) {
	for name, width := range map[string]func(training bool) int{
		"shape": func(training bool) int { return map[bool]int{true: 8, false: 16}[training] },
		"more":  func(training bool) int { return map[bool]int{true: 0, false: 8}[training] },
	} {
		model := func(b *graph.Builder, in Inputs) Outputs {
			x := b.Flatten(in["image"])
			if w := width(b.Training()); w > 0 {
				x = nn.Linear{Out: w}.Apply(b, "hidden", x)
			}
			loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, fmt.Sprint("fc", width(b.Training())), x), in["label"])
			return Outputs{Loss: loss, Count: n}
		}
		_, errs := together(t, 1, func(int) []Option { return append(small(t, t.TempDir(), 2), WithModel(model)) }, nil)
		if errs[0] == nil || !strings.Contains(errs[0].Error(), "hidden.weight") || !strings.Contains(errs[0].Error(), "hint:") {
			t.Errorf("%s: %v", name, errs[0])
		}
	}
}

func TestTrainerRunsOnce(t *testing.T) {
	tr, err := New(append(small(t, t.TempDir(), 1), WithName("once"))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "once") {
		t.Error(err)
	}
}

// The program of a summary prints its order, its buckets and its memory.
func TestSummaryPrintsTheProgram(t *testing.T) {
	tr, err := New(append(small(t, t.TempDir(), 1), func(c *Config) { c.FirstMB = 0.0001 })...)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	s, err := tr.Summarise(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Program.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"conv1", "bucket 0: ", fmt.Sprintf("bucket %d: ", len(s.Buckets)-1), "complete after step", "GFLOP forward", "arena"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Epochs end where those of the data do, even within a step.
func TestEveryEpochWithAccumulation(t *testing.T) {
	evals := 0
	src := noise(t, 40) // 5 batches of 8 per epoch, 2 per step: epochs end in steps 3, 5, 8, 10
	tr, err := New(WithModel(mlp), WithData(src, 8), WithAccumulate(2), WithEval(src, -1), WithSteps(12), WithLR(0.01), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 0)), WithSinks(evalCounter{&evals}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if evals != 5 { // four epochs, and the last step
		t.Errorf("%d evaluations, want 5", evals)
	}
}

type evalCounter struct{ n *int }

func (c evalCounter) Emit(e telemetry.Event) error {
	if _, ok := e.(telemetry.Eval); ok {
		*c.n++
	}
	return nil
}
func (evalCounter) Close() error { return nil }
