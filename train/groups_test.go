package train

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// grouped is a network of three layers; the model itself puts a bias into a group.
func grouped(b *graph.Builder, in Inputs) Outputs {
	x := nn.Linear{Out: 16}.Apply(b, "body.one", b.Flatten(in["image"]))
	x = nn.Linear{Out: 16}.Apply(b, "body.two", b.Relu(x))
	x = b.Add(b.Relu(x), b.Param("shift", []int{16}, graph.Fixed(0.5), graph.Group("slow")))
	loss, n := b.CrossEntropy(nn.Linear{Out: 4}.Apply(b, "head", x), in["label"])
	return Outputs{Loss: loss, Count: n}
}

func under(prefix string) func(string) bool {
	return func(param string) bool { return strings.HasPrefix(param, prefix) }
}

func ptr(v float64) *float64 { return &v }

// threeGroups trains the head fast with its own decay, the shift slowly, and the first layer not at all.
func threeGroups() Option {
	return WithGroups(
		ParamGroup{Name: "stem", Match: under("body.one."), Frozen: true},
		ParamGroup{Name: "head", Match: under("head."), LRFactor: 10, WeightDecay: ptr(0.3)},
		ParamGroup{Name: "slow", LRFactor: 0.25},
	)
}

// weightsAfter trains and reads the weights of the last checkpoint.
func weightsAfter(t *testing.T, ranks, steps int, opts func() []Option) map[string][]float32 {
	t.Helper()
	dir := t.TempDir()
	runRanks(t, ranks, func(int) []Option { return append(opts(), WithSteps(steps), WithCheckpoints(dir, 0)) })
	return readWeights(t, filepath.Join(dir, fmt.Sprintf("step-%08d", steps), checkpoint.ModelFile))
}

func readWeights(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	set, err := safetensors.OpenSet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	out := map[string][]float32{}
	for _, name := range []string{"body.one.weight", "body.one.bias", "body.two.weight", "body.two.bias", "shift", "head.weight", "head.bias"} {
		if out[name], err = set.Float32s(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func groupRun(t *testing.T, ranks, accumulate int, bucketMB float64, o optim.Config) []Option {
	opts := division(t, images(t, 96), ranks, accumulate, bucketMB)
	return append(opts, WithModel(grouped), WithOptimizer(o))
}

// One step of plain SGD is w - lr·factor·(g + decay·w), so a step without groups and decay gives the gradient, from which every group's step follows.
func TestGroupsStepAsTheirFormula(t *testing.T) {
	const lr, decay = 0.1, 0.05
	sgd := func(decay float64) optim.Config {
		o := optim.Default(optim.SGD, decay)
		o.Momentum = 0
		return o
	}
	slow := WithGroups(ParamGroup{Name: "slow"})
	start := weightsAfter(t, 1, 1, func() []Option { return append(groupRun(t, 1, 1, 25, sgd(0)), slow, WithLR(1e-30)) })
	plain := weightsAfter(t, 1, 1, func() []Option { return append(groupRun(t, 1, 1, 25, sgd(0)), slow) })
	got := weightsAfter(t, 1, 1, func() []Option { return append(groupRun(t, 1, 1, 25, sgd(decay)), threeGroups()) })
	for name, want := range map[string]struct{ factor, decay float64 }{
		"body.one.weight": {0, 0}, "body.one.bias": {0, 0}, "body.two.weight": {1, decay}, "body.two.bias": {1, 0},
		"shift": {0.25, 0}, "head.weight": {10, 0.3}, "head.bias": {10, 0},
	} {
		moved := false
		for i, w := range start[name] {
			g := (float64(w) - float64(plain[name][i])) / lr
			next := float64(w) - lr*want.factor*(g+want.decay*float64(w))
			if d := math.Abs(next - float64(got[name][i])); !(d <= 3e-6) { // float32 of w - plain, times 10
				t.Fatalf("%s[%d] is %g, want %g", name, i, got[name][i], next)
			}
			moved = moved || got[name][i] != w
		}
		if moved != (want.factor > 0) {
			t.Errorf("%s: moved %v", name, moved)
		}
	}
}

// Groups that change no setting change no bit, and no rule depends on the order within a bucket.
func TestGroupsOfTheSameNumbersChangeNoBit(t *testing.T) {
	for _, rule := range optim.Rules() {
		o := optim.Default(rule, 0.01)
		run := func(groups ...ParamGroup) map[string][]float32 {
			return weightsAfter(t, 1, 4, func() []Option { return append(groupRun(t, 1, 1, 25, o), WithLR(0.01), WithGroups(groups...)) })
		}
		want := run(ParamGroup{Name: "slow"})
		got := run(ParamGroup{Name: "slow", LRFactor: 1}, ParamGroup{Name: "head", Match: under("head."), LRFactor: 1, WeightDecay: ptr(0.01)})
		for name := range want {
			for i := range want[name] {
				if want[name][i] != got[name][i] {
					t.Fatalf("%s: %s[%d] is %v, want %v", rule, name, i, got[name][i], want[name][i])
				}
			}
		}
	}
}

func TestGroupsAreTheSameForEveryDivision(t *testing.T) {
	sgd := optim.Default(optim.SGD, 1e-3)
	run := func(ranks, accumulate int, mb float64, groups Option) []float64 {
		return runRanks(t, ranks, func(int) []Option {
			return append(groupRun(t, ranks, accumulate, mb, sgd), WithLR(0.02), WithClipNorm(2), groups)
		})
	}
	want, plain := run(1, 1, 25, threeGroups()), run(1, 1, 25, WithGroups(ParamGroup{Name: "slow"}))
	if math.Abs(want[11]-plain[11]) < 100*divisionBound {
		t.Fatalf("the groups do nothing: %v, %v", want, plain)
	}
	for _, c := range []struct {
		ranks, accumulate int
		mb                float64
	}{{1, 2, 0.0005}, {2, 1, 25}, {2, 2, 0.002}, {4, 1, 0.0005}, {4, 4, 25}} {
		for i, got := range run(c.ranks, c.accumulate, c.mb, threeGroups()) {
			if d := math.Abs(got - want[i]); !(d <= divisionBound) {
				t.Errorf("%+v step %d: loss %.9g, want %.9g", c, i+1, got, want[i])
			}
		}
	}
}

// A run with groups that is stopped and resumed has, bit by bit, the weights of an uninterrupted one.
func TestGroupsResumeBitEqual(t *testing.T) {
	adam := optim.Default(optim.AdamW, 0.05)
	opts := func(dir string) func(int) []Option {
		return func(int) []Option {
			return append(groupRun(t, 2, 1, 0.001, adam), WithLR(0.003), threeGroups(), WithSteps(8), WithCheckpoints(dir, 0), func(c *Config) { c.Resume = true })
		}
	}
	whole, parts := t.TempDir(), t.TempDir()
	runRanks(t, 2, opts(whole))
	runRanksStop(t, 2, opts(parts), 3)
	runRanks(t, 2, opts(parts))
	want, got := readWeights(t, filepath.Join(whole, "step-00000008", checkpoint.ModelFile)),
		readWeights(t, filepath.Join(parts, "step-00000008", checkpoint.ModelFile))
	for name := range want {
		for i := range want[name] {
			if want[name][i] != got[name][i] {
				t.Fatalf("%s[%d] is %v, want %v", name, i, got[name][i], want[name][i])
			}
		}
	}
	set, err := safetensors.OpenSet(filepath.Join(whole, "step-00000008", checkpoint.OptimizerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, name := range set.Names() {
		if strings.Contains(name, "body.one") {
			t.Errorf("a frozen parameter has optimizer state: %s", name)
		}
	}
}

// Freezing the first layers removes their backward pass from the plan: neither their gradients nor those in between are computed.
func TestFrozenGroupHasNoBackwardWork(t *testing.T) {
	steps := func(groups ...ParamGroup) (n int, params []string) {
		tr, err := New(append(groupRun(t, 1, 1, 25, optim.Default(optim.SGD, 0)), WithGroups(groups...))...)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		s, err := tr.Summarise(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range s.Buckets {
			params = append(params, b.Params...)
		}
		return len(tr.train.prog.Plan().Steps), params
	}
	slow := ParamGroup{Name: "slow"}
	all, _ := steps(slow)
	stem, params := steps(slow, ParamGroup{Name: "stem", Match: under("body.one."), Frozen: true})
	body, _ := steps(slow, ParamGroup{Name: "body", Match: under("body."), Frozen: true})
	if !(body < stem && stem < all) {
		t.Errorf("steps of the plan: %d, %d with a frozen stem, %d with a frozen body", all, stem, body)
	}
	if s := fmt.Sprint(params); strings.Contains(s, "body.one") || !strings.Contains(s, "body.two") {
		t.Errorf("buckets hold %s", s)
	}
}

func TestGroupFaults(t *testing.T) {
	for _, c := range []struct {
		want   string
		groups []ParamGroup
	}{
		{`parameter "shift" names group "slow", which the trainer does not have` + "\nhint: train.WithGroups has fast", []ParamGroup{{Name: "fast"}}},
		{"group neck matches no parameter", []ParamGroup{{Name: "slow"}, {Name: "neck", Match: under("neck.")}}},
		{"parameter group 0 has no name", []ParamGroup{{}}},
		{`two parameter groups are called "a"`, []ParamGroup{{Name: "a"}, {Name: "a"}}},
		{"must not be negative, got -1", []ParamGroup{{Name: "a", LRFactor: -1}}},
		{"weight decay must not be negative", []ParamGroup{{Name: "a", WeightDecay: ptr(math.NaN())}}},
		{"is frozen, so it must not set", []ParamGroup{{Name: "a", Frozen: true, LRFactor: 2}}},
	} {
		tr, err := New(append(groupRun(t, 1, 1, 25, optim.Default(optim.SGD, 0)), WithGroups(c.groups...))...)
		if err == nil {
			_, err = tr.Run(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestGroupThatAnotherOneHides(t *testing.T) {
	tr, err := New(append(small(t, "", 2), WithModel(layered), func(c *Config) { c.SaveDir, c.SaveEvery = "", 0 },
		WithGroups(ParamGroup{Name: "all", Match: under(""), LRFactor: 2}, ParamGroup{Name: "head", Match: under("head."), LRFactor: 3}))...)
	if err == nil {
		_, err = tr.Run(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "all parameters that group head matches are in group all") {
		t.Error(err)
	}
}
