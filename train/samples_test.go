package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/optim"
)

// withLogits is mlp with its logits.
func withLogits(b *graph.Builder, in Inputs) Outputs {
	x := b.Reshape(in["image"], b.Dim(in["image"], 0), -1)
	w := b.Param("w", []int{b.Dim(x, 1), 4}, graph.KaimingNormal(graph.FanIn))
	logits := b.MatMul(x, w, false, false)
	loss, n := b.CrossEntropy(logits, in["label"])
	return Outputs{Loss: loss, Count: n, Logits: logits, Metrics: map[string]*graph.Node{"top1": b.TopK(logits, in["label"], 1)}}
}

// Every sample is there once, in order, whatever the number of ranks and the size of batches; together they are the evaluation.
func TestEvaluateSamples(t *testing.T) {
	src := noise(t, 13)
	var want []Sample
	for _, ranks := range []int{1, 2, 3} {
		comms := []comm.Communicator{nil}
		if ranks > 1 {
			var err error
			if comms, err = shm.NewLocal(ranks); err != nil {
				t.Fatal(err)
			}
		}
		var got []Sample
		var sums map[string]float64
		errs := make([]error, ranks)
		var wg sync.WaitGroup
		for r := range ranks {
			wg.Go(func() {
				tr, err := New(WithModel(withLogits), WithData(src, 2), WithEval(src, 0), WithSteps(1), WithLR(0.1), WithDevice("ref", 1), WithSeed(5),
					WithOptimizer(optim.Default(optim.SGD, 0)), WithComm(comms[r]))
				if err != nil {
					errs[r] = err
					return
				}
				s, all, err := tr.EvaluateSamples(context.Background(), 3)
				if errs[r] = err; r == 0 {
					sums, got = s, all
				} else if all != nil {
					t.Errorf("rank %d has %d samples", r, len(all))
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		loss, right := 0.0, 0
		for i, s := range got {
			loss += s.Loss / 13
			if s.Top[0].Label == s.Label {
				right++
			}
			if s.Index != i || len(s.Top) != 3 || s.Top[0].Probability < s.Top[1].Probability || s.Top[1].Probability < s.Top[2].Probability {
				t.Errorf("%d ranks: sample %d: %+v", ranks, i, s)
			}
			if want != nil && (s.Label != want[i].Label || math.Abs(s.Loss-want[i].Loss) > 1e-6) {
				t.Errorf("%d ranks: sample %d: %+v, with one %+v", ranks, i, s, want[i])
			}
		}
		if len(got) != 13 || math.Abs(loss-sums["loss"]) > 1e-5 || math.Abs(float64(right)/13-sums["top1"]) > 1e-12 {
			t.Errorf("%d ranks: %d samples of loss %g, %d right; the evaluation says %v", ranks, len(got), loss, right, sums)
		}
		if want == nil {
			want = got
		}
		for _, c := range comms {
			if c != nil {
				c.Close()
			}
		}
	}
}

// A model without logits says so, before anything is computed.
func TestEvaluateSamplesWithoutLogits(t *testing.T) {
	tr, err := New(WithModel(mlp), WithData(noise(t, 4), 2), WithEval(noise(t, 4), 0), WithSteps(1), WithLR(0.1), WithDevice("ref", 1),
		WithOptimizer(optim.Default(optim.SGD, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tr.EvaluateSamples(context.Background(), 1); launch.ExitCode(err) != launch.ExitUsage || !strings.Contains(err.Error(), "Outputs.Logits") {
		t.Error(err, launch.ExitCode(err))
	}
}

// The likeliest classes by insertion are those of a sort; equal ones keep the order of their labels.
func TestRank(t *testing.T) {
	top, loss := rank([]float32{1, 3, 3, -2, 3, 0}, 1, 4)
	for i, label := range []int{1, 2, 4, 0} {
		if top[i].Label != label {
			t.Errorf("%+v", top)
		}
	}
	e := math.E
	sum := e + 3*e*e*e + 1/(e*e) + 1
	if math.Abs(loss-(math.Log(sum)-3)) > 1e-12 || math.Abs(top[0].Probability-e*e*e/sum) > 1e-12 {
		t.Error(loss, top)
	}
	if all, _ := rank([]float32{2, 1}, -100, 5); len(all) != 2 {
		t.Error(all)
	}
	if Likeliest(nil, 5) != nil || Likeliest([]float32{1}, 0) != nil || Likeliest([]float32{1}, -1) != nil {
		t.Error("classes of nothing")
	}
}
