package train

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph"
	"github.com/gotrain/gotrain/graph/nn"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// wider is bnNet with one more layer, whose shapes leave the others as they are.
func wider(b *graph.Builder, in Inputs) Outputs {
	nn.Linear{Out: 4}.Apply(b, "aux", b.Flatten(in["image"]))
	return bnNet(b, in)
}

// Weights of a larger model are rejected everywhere: as initial weights, on resume and in an evaluation.
func TestSurplusTensorsAreAnError(t *testing.T) {
	dir := t.TempDir()
	run := func(o ...Option) error {
		tr, err := New(append(small(t, "", 2), o...)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(context.Background())
		return err
	}
	if err := run(WithModel(wider), WithGraph(graph.AllowUnreached()), WithCheckpoints(dir, 0)); err != nil {
		t.Fatal(err)
	}
	ck := filepath.Join(dir, "step-00000002")
	from := func(o ...Option) []Option { return append(o, func(c *Config) { c.InitFrom, c.SaveEvery = ck, 0 }) }
	evaluate := func(o ...Option) error {
		tr, err := New(append(small(t, "", 2), from(o...)...)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Evaluate(context.Background())
		return err
	}
	ignore := func(p ...string) Option { return func(c *Config) { c.InitIgnore = p } }
	guess := func(c *Config) {
		c.Recognise = func(names []string) string {
			if strings.Contains(strings.Join(names, " "), "aux.bias") {
				return "Wider"
			}
			return ""
		}
	}
	resume := func(o ...Option) []Option {
		return append(o, func(c *Config) { c.ResumeFrom, c.SaveDir, c.SaveEvery, c.Steps = ck, "", 0, 3 })
	}
	for name, err := range map[string]error{
		"init_from": run(from(guess)...), "eval": evaluate(guess), "resume": run(resume(guess)...),
		"init_from, partly": run(from(guess, func(c *Config) { c.InitPartial = true })...), "init_from, another pattern": run(from(guess, ignore("aux"))...),
	} {
		if launch.ExitCode(err) != launch.ExitRecipe {
			t.Errorf("%s: exit code %d, %v", name, launch.ExitCode(err), err)
			continue
		}
		for _, want := range []string{"2 tensors of the file are not in the model: aux.bias, aux.weight", "look like the weights of Wider", "hint: "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in: %v", name, want, err)
			}
		}
	}
	for name, err := range map[string]error{
		"init_from": run(from(ignore("aux.*"))...), "eval": evaluate(ignore("*")), "resume": run(resume(ignore("aux.weight*", "aux.bias*"))...),
	} {
		if err != nil {
			t.Errorf("%s with what is surplus allowed: %v", name, err)
		}
	}
}

// Optimizer state that the run does not have is not dropped silently.
func TestSurplusOptimizerStateIsAnError(t *testing.T) {
	dir := t.TempDir()
	plain := optim.Default(optim.SGD, 0)
	plain.Momentum = 0
	for i, o := range []optim.Config{optim.Default(optim.SGD, 0), plain} {
		tr, err := New(append(small(t, dir, 2+i), WithOptimizer(o))...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(context.Background())
		if i == 0 && err != nil || i == 1 && (launch.ExitCode(err) != launch.ExitRecipe || !strings.Contains(err.Error(), checkpoint.OptimizerFile)) {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

func noCheckpoints(c *Config) { c.SaveDir, c.SaveEvery = "", 0 }

// Buffers that PyTorch stores with the parameters are not surplus.
func TestCountsOfBatchesAreNoSurplus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	tr, err := New(append(small(t, "", 1), noCheckpoints)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.open(context.Background()); err != nil {
		t.Fatal(err)
	}
	tensors := []safetensors.Tensor{{Name: "bn1.num_batches_tracked", DType: safetensors.I64, Shape: []int64{}}}
	for _, x := range tr.model() {
		tensors = append(tensors, safetensors.Tensor{Name: x.name, DType: safetensors.F32, Shape: int64s(x.desc.Shape)})
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	zero := func(x safetensors.Tensor, w io.Writer) error { _, err := w.Write(make([]byte, x.Bytes())); return err }
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(safetensors.Write(f, tensors, nil, zero), f.Close()); err != nil {
		t.Fatal(err)
	}
	tr, err = New(append(small(t, "", 1), noCheckpoints, func(c *Config) { c.InitFrom = path })...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

// Weights that cannot be read, or are not finite, are no failure of the training: the exit code says that starting again does not help, and the hint
// where to look.
func TestInitialWeightsAreUnreadable(t *testing.T) {
	dir := t.TempDir()
	tr, err := New(append(small(t, dir, 1), WithSteps(1))...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "step-00000001", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	header := 8 + int(binary.LittleEndian.Uint64(whole))
	broken := slices.Clone(whole)
	for i := header; i < len(broken); i += 4 {
		binary.LittleEndian.PutUint32(broken[i:], math.Float32bits(float32(math.NaN())))
	}
	for name, c := range map[string]struct {
		raw  []byte
		code int
		want string
	}{
		"missing":    {nil, launch.ExitNoInput, "no such file"},
		"truncated":  {whole[:header/2], launch.ExitNoInput, "truncated"},
		"not finite": {broken, launch.ExitNumerics, "the initial weights are not finite"},
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if c.raw != nil {
			if err := os.WriteFile(path, c.raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tr, err := New(append(small(t, "", 1), noCheckpoints, func(c *Config) { c.InitFrom = path })...)
		if err == nil {
			_, err = tr.Run(context.Background())
		}
		if err == nil || launch.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d: %v", name, launch.ExitCode(err), err)
		}
	}
}

func TestPatternsOfNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a/b.c", true}, {"fc.*", "fc.weight", true}, {"fc.*", "fcx.weight", false}, {"fc", "fc.weight", false},
		{"layer3.*.conv?.weight", "layer3.0.conv1.weight", true}, {"a/*", "a/b/c", true},
	} {
		if got := matches(c.pattern, c.name); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.name, got)
		}
	}
	if _, err := New(append(small(t, "", 1), noCheckpoints, func(c *Config) { c.InitIgnore = []string{"[a"} })...); err == nil ||
		!strings.Contains(err.Error(), "[a") {
		t.Error(err)
	}
}

// Names with a wrapper's prefix are explained.
func TestMisfitOfWrappedNames(t *testing.T) {
	err := (&Trainer{}).misfit("w.safetensors", []string{"module.conv1.weight", "module.fc.bias"}, "2 tensors of the file are not in the model", "another hint")
	if !strings.Contains(err.Error(), `hint: all names begin with "module."`) || strings.Contains(err.Error(), "another hint") {
		t.Error(err)
	}
}
