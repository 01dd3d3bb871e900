package assemble

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	_ "github.com/gotrain/gotrain/npu/cpu"
	_ "github.com/gotrain/gotrain/npu/ref"
	"github.com/gotrain/gotrain/optim"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/telemetry"
)

// rank is rank 0 of a job, without the others.
func rank(world int) Rank {
	return Rank{Identity: launch.Identity{World: world, LocalWorld: world, Nodes: 1}}
}

func recipe(t *testing.T, name string, sets ...string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Open(name, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every recipe that comes with gotrain runs: one step on small pictures, evaluation, checkpoint and all files.
func TestShippedRecipesRun(t *testing.T) {
	for _, name := range recipes.List() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sets := []string{
				"run.steps=1",
				"run.output_dir=" + dir,
				"train.batch_per_rank=2",
				"train.ranks=1",
				"eval.batch_per_rank=20",
				"log.tensorboard=true",
				"log.trace=true",
			}
			language := strings.HasPrefix(name, "llama")
			if strings.Contains(recipes.Text(name), "init_from") && !language { // weights that are not bundled
				sets = append(sets, "model.init_from=", "model.init_partial=false")
			}
			switch {
			case name == "quickstart", name == "vit-tiny":
			case language:
				sets = append(sets, "text.sequence=64", "train.accumulate_steps=1", "data.root="+shortText(t))
				if name != "llama-finetune" && name != "llama-tiny" { // smaller models on other texts
					sets = append(sets, "llama.size=tiny", "data.kind=text", "text.tokenizer=stories260k")
				}
			default:
				sets = append(sets, "data.root=flowers", "data.image_size=32", "data.eval_resize_pixels=32", "model.width=8")
			}
			r := recipe(t, name, sets...)
			cfg, err := Config(t.Context(), r, rank(1))
			if err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			if cfg.Sinks, err = Sinks(r, launch.Identity{World: 1}, telemetry.NewTerminal(&lines, 0, false)); err != nil {
				t.Fatal(err)
			}
			tr, err := train.New(train.WithConfig(cfg))
			if err != nil {
				t.Fatal(err)
			}
			res, err := tr.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]float64{"quickstart": 500, "vit-tiny": 500}[name]; res.Steps != 1 || math.IsNaN(res.Loss) || want > 0 && res.Eval["items"] != want ||
				res.Eval["items"] < 100 ||
				language && math.Abs(math.Log(res.Eval["perplexity"])-res.Eval["loss"]) > 1e-9 {
				t.Errorf("%+v", res)
			}
			for _, f := range []string{"metrics.jsonl", "tb", "trace-rank0.json", RecipeFile, filepath.Join("checkpoints", "step-00000001", "MANIFEST.json")} {
				if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// shortText is a part of the bundled text.
func shortText(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"train.txt", "val.txt"} {
		raw, err := os.ReadFile(filepath.Join("..", "data", "shakespeare", f))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f), raw[:6000], 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDataErrors(t *testing.T) {
	for _, c := range []struct {
		sets []string
		code int
		want string
	}{
		{[]string{"data.root=nowhere"}, launch.ExitNoInput, "nowhere"},
		{[]string{"data.train_split=nothing"}, launch.ExitNoInput, "nothing"},
		{[]string{"data.kind=idx", "data.image_size=28"}, launch.ExitNoInput, "train-images-idx3-ubyte"},
		{[]string{"data.kind=packed", "data.image_size=32"}, launch.ExitNoInput, "train*.bin"},
		{[]string{"model.classes=4"}, launch.ExitRecipe, "model.classes = 4"},
	} {
		_, err := Config(t.Context(), recipe(t, "resnet50", c.sets...), rank(1))
		if err == nil || launch.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, exit code %d", c.sets, err, launch.ExitCode(err))
		}
	}
}

func TestSinksWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := recipe(t, "quickstart", "run.output_dir="+filepath.Join(file, "below"))
	_, err := Sinks(r, launch.Identity{World: 1}, telemetry.NewTerminal(&strings.Builder{}, 0, false))
	if launch.ExitCode(err) != launch.ExitStorage {
		t.Errorf("got %v", err)
	}
	if s, err := Sinks(r, launch.Identity{Rank: 1, World: 2}, nil); err != nil || len(s) != 0 {
		t.Errorf("rank 1 has %d sinks, %v", len(s), err)
	}
}

// The learning rate by hand: 2 ranks × 16 of a reference of 256, 9 steps of warm-up, cosine to 0.
func TestScheduleOfResNet50(t *testing.T) {
	r := recipe(t, "resnet50")
	s, err := Schedule(r, r.GlobalBatch(2), 0)(90, 9)
	if err != nil {
		t.Fatal(err)
	}
	peak := 0.1 * 32 / 256
	for step, want := range map[int]float64{0: peak / 9, 8: peak, 89: peak * 0.5 * (1 + math.Cos(math.Pi*80/81))} {
		// The end of a cosine is counted at Total by some and at Total-1 by others; a step of it is below 2 % of the peak.
		if got := s.LR(step); math.Abs(got-want) > 0.02*peak {
			t.Errorf("step %d: %g, want %g", step, got, want)
		}
	}
	// A run that is shorter than the warm-up begins like the long one.
	short, err := Schedule(r, r.GlobalBatch(2), 0)(3, 9)
	if err != nil || short.LR(2) != s.LR(2) {
		t.Errorf("short run: %v", err)
	}
}

func TestScheduleKinds(t *testing.T) {
	for _, kind := range []string{"constant", "linear", "cosine", "step", "wsd"} {
		r := recipe(t, "quickstart", "schedule.kind="+kind, "schedule.milestones_epochs=1,2")
		s, err := Schedule(r, 32, 0)(100, 40)
		if err != nil || !(s.LR(50) > 0) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	r := recipe(t, "quickstart", "optim.lr_scaling=linear")
	r.Optim.LR = -1
	if _, err := Schedule(r, 32, 0)(100, 40); launch.ExitCode(err) != launch.ExitRecipe {
		t.Errorf("got %v", err)
	}
}

func TestOptimizers(t *testing.T) {
	for _, c := range []struct{ sets, want string }{
		{"", "sgd momentum=0.9 dampening=0 nesterov=true decoupled=false decay{lr×1 decay=0.0005} no_decay{lr×1 decay=0}"},
		{"optim.no_decay_norm_bias=false optim.decoupled_decay=true", "decoupled=true decay{lr×1 decay=0.0005} no_decay{lr×1 decay=0.0005}"},
		{"optim.name=adamw optim.beta2=0.95", "adamw betas=0.9,0.95 eps=1e-08"},
		{"optim.name=lamb optim.trust_clip=true", "lamb betas=0.9,0.999 eps=1e-06 trust_clip"},
		{"optim.name=lars optim.trust_coefficient=0.01", "lars momentum=0.9 nesterov=true trust=0.01 eps=1e-09"},
	} {
		o := Optimizer(recipe(t, "quickstart", strings.Fields(c.sets)...))
		if err := o.Validate(); err != nil || !strings.Contains(o.String(), c.want) {
			t.Errorf("%s: %s, %v", c.sets, o, err)
		}
	}
	for _, rule := range optim.Rules() { // a rule that was added wants keys and numbers in package recipes
		if o := Optimizer(recipe(t, "quickstart", "optim.name="+rule, "optim.nesterov=false")); o.Rule != rule || o.Validate() != nil {
			t.Errorf("%s: %v, %v", rule, o, o.Validate())
		}
	}
}

func TestResume(t *testing.T) {
	for _, c := range []struct {
		sets   string
		resume bool
		from   string
		dir    bool
		every  int
	}{
		{"", true, "", true, 0},
		{"checkpoint.resume=none checkpoint.every_steps=7", false, "", true, 7},
		{"checkpoint.resume=/x checkpoint.every_epochs=2", false, "/x", true, -2},
		{"checkpoint.enabled=false", false, "", false, 0},
	} {
		cfg, err := Config(t.Context(), recipe(t, "quickstart", strings.Fields(c.sets)...), rank(2))
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Resume != c.resume || cfg.ResumeFrom != c.from || (cfg.SaveDir != "") != c.dir || cfg.SaveEvery != c.every {
			t.Errorf("%s: resume %v from %q, dir %q, every %d", c.sets, cfg.Resume, cfg.ResumeFrom, cfg.SaveDir, cfg.SaveEvery)
		}
	}
}

// What a bad file does is decided by the recipe.
func TestBadFiles(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"train/a", "train/b", "val/a", "val/b"} {
		d := filepath.Join(root, dir)
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"1.jpg", "2.jpg"} {
			if err := os.WriteFile(filepath.Join(d, f), []byte("not a picture"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for policy, want := range map[string]string{"error": "1.jpg", "skip": "more than the limit of 2"} {
		r := recipe(
			t,
			"resnet50",
			"data.root="+root,
			"data.bad_files="+policy,
			"data.bad_file_limit=2",
			"run.steps=1",
			"train.batch_per_rank=2",
			"data.image_size=32",
			"data.eval_resize_pixels=32",
			"model.width=8",
			"model.depth=18",
			"checkpoint.enabled=false",
			"checkpoint.every_epochs=0",
		)
		cfg, err := Config(t.Context(), r, rank(1))
		if err != nil {
			t.Fatal(err)
		}
		tr, err := train.New(train.WithConfig(cfg))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tr.Run(t.Context())
		if err == nil || errors.Is(err, context.Canceled) || policy == "skip" && !strings.Contains(err.Error(), want) ||
			policy == "error" && !strings.Contains(err.Error(), ".jpg") {
			t.Errorf("%s: %v, want %q", policy, err, want)
		}
	}
}
