package assemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// A recipe that is run in its own folder is not replaced by the one with every default filled in, nor is any other file that gotrain has not written.
func TestStoredRecipeSparesOthers(t *testing.T) {
	dir := t.TempDir()
	own, beside := filepath.Join(dir, RecipeFile), filepath.Join(dir, besideRecipe)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(r *recipes.Recipe) (string, string) {
		t.Helper()
		r.Log.JSONL, r.Log.Console = false, false
		if _, err := Sinks(r, launch.Identity{World: 1}, nil); err != nil {
			t.Fatal(err)
		}
		raw, _ := os.ReadFile(own)
		other, _ := os.ReadFile(beside)
		return string(raw), string(other)
	}
	const mine = "# my best so far\n[run]\nsteps = 30\noutput_dir = \".\"\n[data]\nroot = \"flowers\"\n[optim]\nlr = 0.1\n"
	write(mine)
	r, err := recipes.Load(own, "run.output_dir="+dir, "run.steps=3")
	if err != nil {
		t.Fatal(err)
	}
	if text, resolved := run(r); text != mine || !strings.Contains(resolved, "steps = 3\n") {
		t.Errorf("the recipe is now\n%s\nand beside it is\n%s", text, resolved)
	}
	os.Remove(beside)
	for name, text := range map[string]string{"nothing": "", "this version's": ours + r.String(), "an earlier version's": r.String()} {
		write(text)
		if text, resolved := run(r); !strings.HasPrefix(text, ours) || resolved != "" {
			t.Errorf("%s: the recipe is now\n%s\nand beside it is %q", name, text, resolved)
		}
	}
	annotated := r.String() + "\n# the one for the paper\n"
	write(annotated)
	if text, _ := run(r); text != annotated {
		t.Errorf("notes in the file are lost: %s", text)
	}
}

// A stored recipe that is run with another output folder has checkpoints of its own. It used to name those of the run that it came from, so it went on there.
func TestStoredRecipeMovesWithItsFolder(t *testing.T) {
	for _, c := range []struct{ set, want string }{{"checkpoint.dir=auto", "b/checkpoints"}, {"checkpoint.dir=/elsewhere", "/elsewhere"}} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		r := recipe(t, "quickstart", "run.output_dir="+a, c.set)
		r.Log.JSONL, r.Log.Console, r.Log.TensorBoard = false, false, false
		if _, err := Sinks(r, launch.Identity{World: 1}, nil); err != nil {
			t.Fatal(err)
		}
		again, err := recipes.Load(filepath.Join(a, RecipeFile))
		if err != nil {
			t.Fatal(err)
		}
		if again.Checkpoint.Dir != r.Checkpoint.Dir {
			t.Errorf("%s: run again: %s, want %s", c.set, again.Checkpoint.Dir, r.Checkpoint.Dir)
		}
		if r, err = recipes.Load(filepath.Join(a, RecipeFile), "run.output_dir="+b); err != nil {
			t.Fatal(err)
		}
		if got := r.Checkpoint.Dir; !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: in another folder: %s, want %s", c.set, got, c.want)
		}
	}
}
