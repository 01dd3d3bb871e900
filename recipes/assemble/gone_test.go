package assemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// A resumed run does not need its initial weights, even if only they define the model. A new run does, and reports it.
func TestWeightsThatAreGone(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	if err := os.CopyFS(from, os.DirFS(filepath.FromSlash("../data/stories260k"))); err != nil {
		t.Fatal(err)
	}
	sets := []string{
		"model.init_from=" + from,
		"run.output_dir=" + filepath.Join(dir, "run"),
		"data.root=" + shortText(t),
		"checkpoint.resume=auto",
		"train.batch_per_rank=1",
	}
	r := recipe(t, "llama-finetune", sets...)
	before, err := Config(t.Context(), r, rank(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.Checkpoint.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, from+"2"); err != nil {
		t.Fatal(err)
	}
	if _, err := Config(t.Context(), r, rank(1)); launch.ExitCode(err) != launch.ExitNoInput || !strings.Contains(err.Error(), "no weights to start from") {
		t.Errorf("a new run: %v, exit code %d", err, launch.ExitCode(err))
	}
	// A folder stands for the newest checkpoint where it is one.
	for name, raw := range before.Beside {
		if err := os.WriteFile(filepath.Join(r.Checkpoint.Dir, name), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(from+"2", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.Checkpoint.Dir, "model.safetensors"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := Config(t.Context(), r, rank(1)); err != nil || string(c.Beside["config.json"]) != string(before.Beside["config.json"]) {
		t.Errorf("a resumed run: %v", err)
	}
}

// What is wrong with the dimensions, or a batch that the data do not fill, is wrong with the recipe, whatever the data are.
func TestDimensionsAreTheRecipes(t *testing.T) {
	for _, set := range []string{"llama.heads=7", "text.sequence=1000000", "train.batch_per_rank=100000"} {
		_, err := Config(t.Context(), recipe(t, "llama-tiny", "llama.size=tiny", "data.kind=synthetic", set), rank(1))
		if launch.ExitCode(err) != launch.ExitRecipe {
			t.Errorf("%s: %v, exit code %d", set, err, launch.ExitCode(err))
		}
	}
}
