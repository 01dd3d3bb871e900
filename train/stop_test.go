package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
)

// A step abandoned at any place before its update leaves no trace: the checkpoint is that of the previous step, and the resumed run has the losses
// and evaluations (which use running statistics) of an uninterrupted one. If updates do not wait, the step is completed.
func TestAbandonedStepLeavesNothing(t *testing.T) {
	const at = 5 // already complete when the request arrives
	for _, ranks := range []int{1, 2} {
		for accumulate, clip := range map[int]float64{1: 0, 3: 1} {
			opts := func(dir string) []Option {
				o := []Option{WithModel(bnNet), WithData(images(t, 50), 6), WithEval(images(t, 21), 4), WithSteps(8), WithLR(0.02), WithDevice("ref", 1),
					WithSeed(11), WithOptimizer(optim.Default(optim.AdamW, 1e-3)), WithClipNorm(clip), WithAccumulate(accumulate)}
				if dir != "" {
					o = append(o, WithCheckpoints(dir, 100))
				}
				return o
			}
			want, wantEval, errs := ranksWith(t, ranks, opts(""), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				name  string
				stage stage
				hold  time.Duration
				who   []int
				left  int // steps done
			}{
				{"in the forward pass", enqueued, time.Hour, []int{ranks - 1}, at},
				{"in the forward pass of all", enqueued, time.Hour, []int{0, ranks - 1}, at},
				{"in the backward pass", voted, 0, []int{ranks - 1}, at},
				{"before the update", reduced, 0, []int{0}, at},
				{"in a short backward pass", voted, time.Hour, []int{ranks - 1}, at + 1},
			} {
				name := fmt.Sprintf("%d ranks, clip %g, %d accumulated: %s", ranks, clip, accumulate, c.name)
				dir := t.TempDir()
				first, _, errs := ranksWith(t, ranks, opts(dir), func(tr *Trainer, rank int) {
					tr.holdAfter = c.hold
					tr.within = func(s stage) {
						if tr.step != at || s != c.stage {
							return
						}
						for _, w := range c.who {
							if w == rank {
								tr.Abandon()
							}
						}
					}
				})
				for r, err := range errs {
					var stop *StopError
					if !errors.As(err, &stop) || stop.Step != c.left || !stop.Saved || !stop.Abandoned || launch.ExitCode(err) != launch.ExitStopped {
						t.Fatalf("%s: rank %d: %+v", name, r, err)
					}
					if !strings.Contains(err.Error(), fmt.Sprintf("step %d was abandoned", c.left+1)) {
						t.Errorf("%s: %v", name, err)
					}
				}
				rest, gotEval, errs := ranksWith(t, ranks, opts(dir), nil)
				if err := errors.Join(errs...); err != nil {
					t.Fatal(name, err)
				}
				got := append(first.v, rest.v...)
				if len(first.v) != c.left || len(got) != len(want.v) {
					t.Fatalf("%s: %d and %d steps", name, len(first.v), len(rest.v))
				}
				for i := range got {
					if got[i] != want.v[i] {
						t.Errorf("%s: step %d: loss %.17g, want %.17g", name, i+1, got[i], want.v[i])
					}
				}
				if gotEval.at[8] != wantEval.at[8] {
					t.Errorf("%s: evaluation %.17g, want %.17g", name, gotEval.at[8], wantEval.at[8])
				}
			}
		}
	}
}

// stuck is a source that does not deliver one of its samples until the loader gives up, like an unreachable file server.
type stuck struct {
	data.Source
	index int
}

func (s stuck) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	if i == s.index {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Source.Load(ctx, r, i, dst)
}

// An endless wait for data is abandoned too, in training and in an evaluation, and the complete steps are saved.
func TestAbandonEndsWaitingForData(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for name, opt := range map[string]Option{
			"training":   WithData(stuck{images(t, 48), 24}, 6), // of step 5 on one rank, of step 3 on two, in this order
			"evaluation": WithEval(stuck{images(t, 21), 20}, 2),
		} {
			dir := t.TempDir()
			_, _, errs := ranksWith(t, ranks, append(small(t, dir, 40), WithCheckpoints(dir, 100), opt, func(c *Config) { c.NoShuffle = true }),
				func(tr *Trainer, rank int) {
					if rank > 0 { // follows rank 0's request
						return
					}
					tr.afterStep = func(step int) {
						if step == 2 {
							go func() {
								time.Sleep(50 * time.Millisecond) // long enough to be waiting, most of the time
								tr.Abandon()
							}()
						}
					}
				})
			for r, err := range errs {
				var stop *StopError
				if !errors.As(err, &stop) || !stop.Saved || stop.Step < 2 {
					t.Errorf("%s, rank %d of %d: %v", name, r, ranks, err)
				}
			}
		}
	}
}

// The exit code tells what a stop is worth: 75 only if the same command makes progress.
func TestStoppedSaysWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		opts   []Option
		before bool // requested before the run begins
		code   int
		want   []string
	}{
		{"saved", []Option{WithCheckpoints(dir, 0)}, false, launch.ExitStopped, []string{"after step 3", "the checkpoint of step 3 is in " + dir, "to resume"}},
		{"resumed, nothing done", []Option{WithCheckpoints(dir, 0)}, true, launch.ExitStopped, []string{"the checkpoint of step 3 is in " + dir, "to resume"}},
		{"start", []Option{WithCheckpoints(t.TempDir(), 0)}, true, launch.ExitNotResumable,
			[]string{"before step 1 was complete", "nothing to save", "starts over"}},
		{"no directory", nil, false, launch.ExitNotResumable, []string{"checkpoints are off", "3 steps of this run are lost", "starts over"}},
		{"start, no directory", nil, true, launch.ExitNotResumable, []string{"before step 1 was complete", "starts over"}},
		{"does not resume", []Option{WithCheckpoints(t.TempDir(), 0), func(c *Config) { c.Resume = false }}, false, launch.ExitNotResumable,
			[]string{"the checkpoint of step 3", "does not resume"}},
	} {
		opts := append([]Option{WithModel(mlp), WithData(noise(t, 64), 8), WithSteps(50), WithLR(0.01), WithDevice("ref", 1),
			WithOptimizer(optim.Default(optim.SGD, 0))}, c.opts...)
		_, _, errs := ranksWith(t, 1, opts, func(tr *Trainer, _ int) {
			if c.before {
				tr.Stop()
			}
			tr.afterStep = func(step int) {
				if step == 2 {
					tr.Stop()
				}
			}
		})
		if !errors.Is(errs[0], ErrStopped) || launch.ExitCode(errs[0]) != c.code {
			t.Errorf("%s: exit code %d: %v", c.name, launch.ExitCode(errs[0]), errs[0])
		}
		for _, w := range c.want {
			if errs[0] != nil && !strings.Contains(errs[0].Error(), w) {
				t.Errorf("%s: %q is not in: %v", c.name, w, errs[0])
			}
		}
	}
	infos, err := checkpoint.New(checkpoint.OS{}, dir, 2).List(context.Background())
	if err != nil || len(infos) != 1 {
		t.Errorf("a stop before the first step wrote something: %v %v", infos, err)
	}
}

// An evaluation whose start waits for a rank that does not come can be abandoned, as a training can.
func TestAbandonEndsTheStartOfAnEvaluation(t *testing.T) {
	group, err := shm.NewLocal(2)
	if err != nil {
		t.Fatal(err)
	}
	defer group[1].Close()
	defer group[0].Close()
	tr, err := New(WithConfig(Config{Model: mlp, Data: noise(t, 64), Batch: 8, Steps: 1, Schedule: ConstantLR(0.1), Optim: optim.Default(optim.SGD, 0),
		Device: "ref",
		Comm:   group[0], Eval: noise(t, 16), EvalBatch: 8}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tr.Abandon()
	_, err = tr.Evaluate(ctx)
	var stop *StopError
	if !errors.As(err, &stop) || !stop.Evaluation || launch.ExitCode(err) != launch.ExitNotResumable {
		t.Error(err)
	}
}
