package train

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/telemetry"
)

// evaluateOn evaluates the initial weights of a run on several ranks in this process.
func evaluateOn(t *testing.T, ranks int, opts ...Option) ([]map[string]float64, []error) {
	t.Helper()
	comms := []comm.Communicator{nil}
	if ranks > 1 {
		var err error
		if comms, err = shm.NewLocal(ranks); err != nil {
			t.Fatal(err)
		}
	}
	out, errs := make([]map[string]float64, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			tr, err := New(append([]Option{WithModel(mlp), WithData(noise(t, 32), 2), WithSteps(3), WithLR(0.1), WithDevice("ref", 1), WithSeed(5),
				WithOptimizer(optim.Default(optim.SGD, 0)), WithComm(comms[r])}, opts...)...)
			if err == nil {
				out[r], err = tr.Evaluate(context.Background())
			}
			errs[r] = err
		})
	}
	wg.Wait()
	for _, c := range comms {
		if c != nil {
			c.Close()
		}
	}
	return out, errs
}

// A rank without held-out samples, because there are fewer samples than ranks or all of its own were skipped, counts nothing and takes part in
// everything else.
func TestRankWithoutHeldOutSamples(t *testing.T) {
	for _, c := range []struct {
		name  string
		src   data.Source
		items float64
	}{
		{"one sample", noise(t, 1), 1},
		{"two samples", noise(t, 2), 2},
		{"rank 1 of 2 has only a bad one", unreadable{noise(t, 2), 1}, 1},
		{"rank 0 of 2 has only a bad one", unreadable{noise(t, 2), 0}, 1},
	} {
		skip := func(cfg *Config) { cfg.SkipBad = 1 }
		want, errs := evaluateOn(t, 1, WithEval(c.src, 0), skip)
		if err := errors.Join(errs...); err != nil || want[0]["items"] != c.items {
			t.Fatalf("%s: %v %v", c.name, want, err)
		}
		for _, ranks := range []int{2, 3, 4} {
			got, errs := evaluateOn(t, ranks, WithEval(c.src, 0), skip)
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%s on %d ranks: %v", c.name, ranks, err)
			}
			for r := range got {
				for name, v := range want[0] {
					if d := math.Abs(got[r][name] - v); !(d <= 1e-6*math.Abs(v)) { // two float32 sums of one row each against one of two
						t.Errorf("%s on %d ranks: rank %d: %s is %v, want %v", c.name, ranks, r, name, got[r][name], v)
					}
				}
			}
		}
	}
}

// evals records the steps after which evaluations ran, and their results.
type evals struct{ at map[int64]float64 }

func (e *evals) Emit(ev telemetry.Event) error {
	if v, ok := ev.(telemetry.Eval); ok {
		e.at[v.Step] = v.Loss.X
	}
	return nil
}
func (*evals) Close() error { return nil }

// A failed evaluation loses no training: the step is saved, the error names the checkpoint and keeps its exit code, and the next run begins with the
// evaluation still due. Losses and evaluations equal those of a run without failure, whether a checkpoint was due at that step or not.
func TestFailedEvaluationKeepsTheTraining(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for _, every := range []int{3, 100} { // checkpoints: at the step of the evaluation, or only at the end
			dir := t.TempDir()
			run := func(dir string, held data.Source) (losses, evals, []error) {
				l, e := losses{}, evals{map[int64]float64{}}
				_, errs := together(t, ranks, func(rank int) []Option {
					o := append(small(t, dir, 6), WithCheckpoints(dir, every), WithEval(held, 3))
					if rank == 0 {
						o = append(o, WithSinks(&l, &e))
					}
					return o
				}, nil)
				return l, e, errs
			}
			wantLoss, wantEval, errs := run(t.TempDir(), images(t, 21))
			if err := errors.Join(errs...); err != nil || len(wantEval.at) != 2 {
				t.Fatal(wantEval, err)
			}

			first, none, errs := run(dir, coded{unreadable{images(t, 21), 20}})
			for r, err := range errs {
				if launch.ExitCode(err) != launch.ExitNoInput || !strings.Contains(err.Error(), "on fire") ||
					!strings.Contains(err.Error(), "checkpoint of step 3 is in "+dir) {
					t.Errorf("%d ranks: rank %d: exit code %d: %v", ranks, r, launch.ExitCode(err), err)
				}
			}
			if len(first.v) != 3 || len(none.at) != 0 {
				t.Fatalf("%d ranks: %d steps and %d evaluations before the failure", ranks, len(first.v), len(none.at))
			}
			rest, gotEval, errs := run(dir, images(t, 21))
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			got := append(first.v, rest.v...)
			if len(got) != len(wantLoss.v) || len(gotEval.at) != 2 {
				t.Fatalf("%d ranks: %d steps and evaluations %v", ranks, len(got), gotEval)
			}
			for i := range got {
				if got[i] != wantLoss.v[i] {
					t.Errorf("%d ranks, checkpoints every %d: step %d: loss %.17g, want %.17g", ranks, every, i+1, got[i], wantLoss.v[i])
				}
			}
			for step, v := range wantEval.at {
				if gotEval.at[step] != v {
					t.Errorf("%d ranks: evaluation after step %d: %.17g, want %.17g", ranks, step, gotEval.at[step], v)
				}
			}
			again, noneLeft, errs := run(dir, images(t, 21))
			if err := errors.Join(errs...); err != nil || len(again.v) != 0 || len(noneLeft.at) != 0 {
				t.Errorf("%d ranks: started again: %d steps, evaluations %v, error %v", ranks, len(again.v), noneLeft, err)
			}
		}
	}
}

// coded gives source errors an exit code.
type coded struct{ data.Source }

func (c coded) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	return launch.WithCode(launch.ExitNoInput, c.Source.Load(ctx, r, i, dst))
}

// A non-finite held-out loss is a numerics error that names the place; the checkpoint of the step stays.
func TestNonFiniteEvaluation(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		_, errs := together(t, ranks, func(int) []Option {
			return []Option{WithModel(mlp), WithData(noise(t, 64), 8), WithEval(poisoned{noise(t, 32), 13}, 0), WithSteps(4), WithLR(0.01),
				WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1), WithCheckpoints(dir, 0)}
		}, nil)
		found := 0
		for r, err := range errs {
			if launch.ExitCode(err) != launch.ExitNumerics || !strings.Contains(err.Error(), "evaluation after step 4") || !strings.Contains(err.Error(), dir) {
				t.Errorf("rank %d of %d: exit code %d: %v", r, ranks, launch.ExitCode(err), err)
			} else if strings.Contains(err.Error(), "samples [") && strings.Contains(err.Error(), " 13 ") {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d of %d ranks name the sample: %v", found, ranks, errs)
		}
		ck, err := checkpoint.New(checkpoint.OS{}, dir, 2).Load(context.Background(), "step-00000004")
		if err != nil {
			t.Fatal(err)
		}
		ck.Close()
		_, errs = evaluateOn(t, ranks, WithEval(poisoned{noise(t, 32), 13}, 0), func(c *Config) { c.InitFrom = filepath.Join(dir, "step-00000004") })
		if launch.ExitCode(errs[0]) != launch.ExitNumerics || !strings.Contains(errs[0].Error(), "hint: evaluate an earlier checkpoint") {
			t.Errorf("evaluated alone: exit code %d: %v", launch.ExitCode(errs[0]), errs[0])
		}
	}
}
