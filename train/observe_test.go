package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// OnStep sees every step, reads weights, saves where it wants to, and stops the run.
func TestOnStep(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		var steps []int
		var loss float64
		res, errs := together(t, ranks, func(rank int) []Option {
			return append(small(t, dir, 20), WithOnStep(func(ctx context.Context, v *StepView) error {
				if w, err := v.Weights(ctx, "fc.weight"); err != nil || len(w) != 32 || !slices.Contains(v.Names(), "bn1.running_mean") {
					return errors.Join(errors.New("weights"), err)
				}
				if _, err := v.Weights(ctx, "fc.wieght"); err == nil || !strings.Contains(err.Error(), "fc.wieght") {
					t.Error(err)
				}
				if rank == 0 {
					steps, loss = append(steps, v.Step), v.Loss
				}
				if !math.IsNaN(v.GradNorm) || v.Total != 20 || len(v.Metrics) != 1 || v.LR != 0.02 {
					t.Errorf("%+v", v)
				}
				if v.Step != 5 {
					return nil
				}
				if rank == ranks-1 {
					v.Stop()
				}
				return v.Save(ctx)
			}))
		}, nil)
		if !errors.Is(errs[0], ErrStopped) || !slices.Equal(steps, []int{1, 2, 3, 4, 5, 6}) || res[0].Loss != loss {
			t.Errorf("%d ranks: steps %v, %+v, %v", ranks, steps, res[0], errs[0])
		}
		if got := names(t, dir); !slices.Equal(got, []string{"step-00000005", "step-00000006"}) {
			t.Errorf("%d ranks: checkpoints %v", ranks, got)
		}
	}
}

func TestNetworkThatIsNoJSON(t *testing.T) {
	_, err := New(append(small(t, "", 3), WithNetwork("x", func() {}))...)
	if err == nil || !strings.Contains(err.Error(), `network "x"`) {
		t.Error(err)
	}
}

func TestErrorOfOnStep(t *testing.T) {
	_, errs := together(t, 2, func(rank int) []Option {
		return append(small(t, t.TempDir(), 20), WithOnStep(func(_ context.Context, v *StepView) error {
			if v.Step == 2 && rank == 1 {
				return errors.New("enough")
			}
			return nil
		}))
	}, nil)
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "rank 1 step 2: OnStep: enough") || errs[0] == nil {
		t.Errorf("%v", errs)
	}
}
