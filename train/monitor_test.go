package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
)

// judged feeds results to a monitor, one evaluation after each step, and returns what it makes of each.
func judged(m Monitor, results ...float64) (better []bool, t *Trainer) {
	var c comm.Communicator = self.New()
	t = &Trainer{cfg: Config{Monitor: m}, comm: c}
	for i, v := range results {
		t.step = i + 1
		better = append(better, t.judge(map[string]float64{m.metric(): v}))
	}
	return better, t
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name    string
		monitor Monitor
		results []float64
		better  []bool
		best    checkpoint.Best
	}{
		{"loss falls", Monitor{}, []float64{3, 2, 2.5, 1}, []bool{true, true, false, true}, checkpoint.Best{Metric: "loss", Value: 1, Step: 4, Last: 4}},
		{"metrics rise", Monitor{Metric: "top1"}, []float64{0.3, 0.5, 0.4}, []bool{true, true, false},
			checkpoint.Best{Metric: "top1", Value: 0.5, Step: 2, Last: 3, Waited: 1, Since: 1}},
		{"an error rate falls", Monitor{Metric: "wer", Mode: MonitorMin}, []float64{0.3, 0.5, 0.2}, []bool{true, false, true},
			checkpoint.Best{Metric: "wer", Value: 0.2, Step: 3, Last: 3}},
		{"equal is not better", Monitor{}, []float64{1, 1}, []bool{true, false}, checkpoint.Best{Metric: "loss", Value: 1, Step: 1, Last: 2, Waited: 1, Since: 1}},
		{"too little", Monitor{MinDelta: 0.1}, []float64{1, 0.95, 0.85}, []bool{true, false, true}, checkpoint.Best{Metric: "loss", Value: 0.85, Step: 3, Last: 3}},
		{"plateau", Monitor{Plateau: &Plateau{Patience: 2, Gamma: 0.5, MinRatio: 0.25}}, []float64{1, 2, 2, 2, 2, 2, 2, 2}, append([]bool{true}, make([]bool, 7)...),
			checkpoint.Best{Metric: "loss", Value: 1, Step: 1, Last: 8, Waited: 7, Drops: 2, Since: 1}},
	} {
		better, tr := judged(c.monitor, c.results...)
		if !slices.Equal(better, c.better) || *tr.best != c.best {
			t.Errorf("%s: %v %+v, want %v %+v", c.name, better, *tr.best, c.better, c.best)
		}
	}
}

// The rate falls by the factor after each run of evaluations without a better one, down to its limit.
func TestPlateauLowersTheRate(t *testing.T) {
	m := Monitor{Plateau: &Plateau{Patience: 2, Gamma: 0.1, MinRatio: 0.05}}
	for n, want := range []float64{1, 1, 0.1, 0.1, 0.05, 0.05, 0.05} {
		_, tr := judged(m, append([]float64{1}, slices.Repeat([]float64{2}, n)...)...)
		if got := tr.lowered(); got != want {
			t.Errorf("after %d evaluations: %g, want %g", n, got, want)
		}
	}
}

func names(t *testing.T, dir string) (steps []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			steps = append(steps, f.Name())
		}
	}
	return steps
}

// The best checkpoint outlives rotation, has its evaluation, and exists although no checkpoint was due at its step.
func TestBestCheckpointIsKept(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		opts := func(int) []Option { // the loss falls, so the highest one is early
			return append(small(t, dir, 12), WithEval(images(t, 21), 1), WithCheckpoints(dir, 2), WithMonitor(Monitor{Mode: MonitorMax, KeepBest: true}))
		}
		res, errs := together(t, ranks, opts, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		s := checkpoint.New(checkpoint.OS{}, dir, 2)
		best, err := s.Best()
		if err != nil || best != fmt.Sprintf("step-%08d", res[0].Best.Step) || res[0].Best.Step > 9 {
			t.Fatalf("%d ranks: the best is %q of %+v: %v", ranks, best, res[0].Best, err)
		}
		if got := names(t, dir); !slices.Equal(got, []string{best, "step-00000010", "step-00000012"}) {
			t.Errorf("%d ranks: kept %v", ranks, got)
		}
		ck, err := s.Load(t.Context(), best)
		if err != nil {
			t.Fatal(err)
		}
		if ck.State.Metrics["loss"] != res[0].Best.Value || ck.State.EvaluationDue {
			t.Errorf("%d ranks: the best checkpoint has %v, want %g", ranks, ck.State.Metrics, res[0].Best.Value)
		}
		ck.Close()
	}
}

// A run that ends early succeeds, has saved its last step, does nothing when it is started again, and goes on with more patience.
func TestStoppedEarly(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		dir := t.TempDir()
		run := func(patience int) Result {
			t.Helper()
			res, errs := together(t, ranks, func(int) []Option {
				return append(small(t, dir, 40), WithEval(images(t, 21), 1), WithLR(1), WithMonitor(Monitor{Patience: patience}))
			}, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			return res[0]
		}
		first := run(3)
		if first.Early == "" || first.Stopped || first.Steps >= 40 || first.Best.Waited != 3 || int(first.Best.Step)+3 != first.Steps {
			t.Fatalf("%d ranks: %+v %+v", ranks, first, first.Best)
		}
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf("step-%08d", first.Steps))); err != nil {
			t.Error(err)
		}
		again := run(3)
		if again.Steps != first.Steps || again.Early != first.Early || *again.Best != *first.Best {
			t.Errorf("%d ranks: started again: %+v, want %+v", ranks, again, first)
		}
		if more := run(5); more.Steps != first.Steps+2 && more.Best.Step <= first.Best.Step {
			t.Errorf("%d ranks: more patience: %+v", ranks, more)
		}
	}
}

// A run with a plateau schedule that is stopped, also between a checkpoint and its evaluation, resumes with the same bits.
func TestPlateauResumesBitEqual(t *testing.T) {
	whole := t.TempDir()
	opts := func(dir string) func(int) []Option {
		return func(int) []Option {
			return append(small(t, dir, 12), WithEval(images(t, 21), 2), WithCheckpoints(dir, 2), WithMonitor(Monitor{Mode: MonitorMax, KeepBest: true,
				Plateau: &Plateau{Patience: 1, Gamma: 0.5}}))
		}
	}
	want, errs := together(t, 2, opts(whole), nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if want[0].Best.Drops == 0 {
		t.Fatalf("the rate was never lowered: %+v", want[0].Best)
	}
	for _, at := range []int{3, 4, 6, 9} { // with evaluations after even steps
		dir := t.TempDir()
		_, errs := together(t, 2, opts(dir), func(tr *Trainer, rank, step int) {
			if step == at {
				tr.Stop()
			}
		})
		if !errors.Is(errs[0], ErrStopped) {
			t.Fatal(errs[0])
		}
		got, errs := together(t, 2, opts(dir), nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got[0].Loss != want[0].Loss || *got[0].Best != *want[0].Best || got[0].Eval["loss"] != want[0].Eval["loss"] {
			t.Errorf("stopped after step %d: %+v %+v, want %+v %+v", at, got[0], got[0].Best, want[0], want[0].Best)
		}
		if a, b := names(t, whole), names(t, dir); !slices.Equal(a, b) {
			t.Errorf("stopped after step %d: checkpoints %v, want %v", at, b, a)
		}
	}
}

func TestMonitorFaults(t *testing.T) {
	base := []Option{WithModel(mlp), WithData(noise(t, 64), 16), WithSteps(3), WithLR(0.1), WithOptimizer(optim.Default(optim.SGD, 0)), WithDevice("ref", 1)}
	_, err := New(append(base, WithMonitor(Monitor{Mode: "up", MinDelta: -1, Patience: -1, KeepBest: true, Plateau: &Plateau{Gamma: 2, MinRatio: 3}}))...)
	for _, want := range []string{"min or max", "least improvement", "patience must not", "require evaluations", "directory", "patience of the plateau",
		"factor of the plateau", "lowest rate"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	tr, err := New(append(base, WithEval(noise(t, 20), 1), WithMonitor(Monitor{Metric: "top5", Patience: 2}))...)
	if err == nil {
		_, err = tr.Run(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), `no result "top5"`) || !strings.Contains(err.Error(), "loss, top1") {
		t.Errorf("unknown metric: %v", err)
	}
}

// A checkpoint that OnStep saves knows that its evaluation is due, is written once, and does not push older ones out.
func TestSaveOfOnStepBeforeAnEvaluation(t *testing.T) {
	dir := t.TempDir()
	opts := func(stop bool) func(int) []Option {
		return func(int) []Option {
			return append(small(t, dir, 12), WithOnStep(func(ctx context.Context, v *StepView) error {
				if v.Step%4 != 0 {
					return nil
				}
				if stop && v.Step == 8 {
					v.Stop()
				}
				return v.Save(ctx)
			}))
		}
	}
	evaluated := map[int]bool{}
	seen := func(tr *Trainer, _, _ int) { evaluated[tr.evaluated] = true }
	if _, errs := together(t, 1, opts(true), seen); !errors.Is(errs[0], ErrStopped) {
		t.Fatal(errs)
	}
	if _, errs := together(t, 1, opts(false), seen); errs[0] != nil {
		t.Fatal(errs)
	}
	if !evaluated[4] || !evaluated[8] {
		t.Errorf("evaluations after steps %v", evaluated)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"step-00000009", "step-00000012"}) && !slices.Equal(got, []string{"step-00000008", "step-00000012"}) {
		t.Errorf("kept %v", got)
	}
}

// A mark that fails is made before the next rotation.
func TestBestIsMarkedLater(t *testing.T) {
	dir := t.TempDir()
	_, errs := together(t, 1, func(int) []Option {
		return append(small(t, dir, 8), WithEval(images(t, 21), 1), WithCheckpoints(dir, 1), WithMonitor(Monitor{Mode: MonitorMax, KeepBest: true}),
			func(c *Config) {
				c.opened = func(tr *Trainer) { tr.disk = &unmarkable{FS: checkpoint.OS{}, fails: 1} }
			})
	}, nil)
	if errs[0] != nil {
		t.Fatal(errs)
	}
	best, err := checkpoint.New(checkpoint.OS{}, dir, 2).Best()
	if err != nil || best != "step-00000001" || !slices.Contains(names(t, dir), best) {
		t.Errorf("the best is %q of %v: %v", best, names(t, dir), err)
	}
}

// unmarkable fails to create the pointer to the best checkpoint a number of times.
type unmarkable struct {
	checkpoint.FS
	fails int
}

func (u *unmarkable) Create(path string) (checkpoint.File, error) {
	if filepath.Base(path) == "best.tmp" && u.fails > 0 {
		u.fails--
		return nil, syscall.ENOSPC
	}
	return u.FS.Create(path)
}

// What could not be saved as the best does not stand in the way of what can.
func TestBestAfterAFullDisk(t *testing.T) {
	dir := t.TempDir()
	res, errs := together(t, 2, func(rank int) []Option {
		return append(small(t, dir, 8), WithEval(images(t, 21), 1), WithCheckpoints(dir, 0), WithMonitor(Monitor{Mode: MonitorMax, KeepBest: true}),
			func(c *Config) {
				c.opened = func(tr *Trainer) { tr.disk = &fullAtFirst{FS: checkpoint.OS{}, tr: tr} }
			})
	}, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	best, err := checkpoint.New(checkpoint.OS{}, dir, 2).Best()
	if b := res[0].Best; err != nil || b.Step != 1 || b.KeptStep < 2 || best != stepName(int(b.KeptStep)) || *res[1].Best != *b {
		t.Errorf("the best is %q: %+v %v", best, b, err)
	}
}

// fullAtFirst has no room in the first step.
type fullAtFirst struct {
	checkpoint.FS
	tr *Trainer
}

func (f *fullAtFirst) Create(path string) (checkpoint.File, error) {
	if f.tr.step <= 1 {
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(path)
}

// The learning rate stays where it is when another result is monitored from now on.
func TestPlateauWithAnotherMetric(t *testing.T) {
	m := Monitor{Plateau: &Plateau{Patience: 1, Gamma: 0.1}}
	_, tr := judged(m, 1, 2, 2)
	tr.cfg.Monitor.Metric = "top1"
	tr.judge(map[string]float64{"top1": 0.5})
	if tr.best.Metric != "top1" || tr.best.Drops != 2 {
		t.Errorf("%+v", tr.best)
	}
}

// A run that resumes from the best checkpoint of its own folder does not write it a second time.
func TestResumeFromTheBest(t *testing.T) {
	dir := t.TempDir()
	opts := func(o ...Option) func(int) []Option {
		return func(int) []Option {
			return append(append(small(t, dir, 6), WithEval(images(t, 21), 2), WithCheckpoints(dir, 2), WithMonitor(Monitor{Mode: MonitorMax, KeepBest: true})), o...)
		}
	}
	if _, errs := together(t, 2, opts(), nil); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	best, _ := checkpoint.Resolve(filepath.Join(dir, "best"))
	if _, errs := together(t, 2, opts(func(c *Config) { c.ResumeFrom = filepath.Join(dir, "best") }), nil); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for _, name := range names(t, dir) {
		if name == filepath.Base(best)+"-2" {
			t.Errorf("%s was written twice: %v", filepath.Base(best), names(t, dir))
		}
	}
}
