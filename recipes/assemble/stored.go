package assemble

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/foreign"
)

// RecipeFile is the name of the resolved recipe in the output folder, and besideRecipe the one that it has where a recipe of the user's has that name.
const (
	RecipeFile   = "recipe.toml"
	besideRecipe = "recipe.resolved.toml"
)

// ours begins the resolved recipe. Earlier versions wrote no such line, but the same keys in the same order.
const ours = "# Written by gotrain: the recipe of this folder with every default filled in. The next run here replaces it.\n"

var earlier = regexp.MustCompile(`\A\[run\]\nname = .*\nseed = .*\noutput_dir = .*\n`)

// writeRecipe writes the resolved recipe next to the results. A file of that name that gotrain has not written is somebody's work, such as the recipe that
// is run in its own folder: it stays, and the resolved recipe gets another name.
func writeRecipe(r *recipes.Recipe) error {
	dir, name := r.Run.OutputDir, RecipeFile
	raw, err := foreign.ReadFile(filepath.Join(dir, RecipeFile), 1<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && ofOthers(raw) { // what cannot be read is not gotrain's either
		name = besideRecipe
		slog.Warn("the output folder has a recipe that gotrain did not write; it is kept, and the one with every default filled in goes beside it",
			"kept", filepath.Join(dir, RecipeFile), "written", filepath.Join(dir, name))
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(ours+portable(r)), 0o644)
}

// portable is the recipe with every default filled in, except the folder of the checkpoints: a stored recipe that is run with another output folder must
// not go on in the checkpoints of the run that it comes from.
func portable(r *recipes.Recipe) string {
	stored := *r
	if stored.Checkpoint.Dir == filepath.Join(r.Run.OutputDir, "checkpoints") {
		stored.Checkpoint.Dir = "auto"
	}
	return stored.String()
}

// ofOthers tells whether a recipe has anything that writing it again could lose.
func ofOthers(raw []byte) bool {
	if len(bytes.TrimSpace(raw)) == 0 || bytes.HasPrefix(raw, []byte(ours)) {
		return false
	}
	return !earlier.Match(raw) || bytes.HasPrefix(raw, []byte("#")) || bytes.Contains(raw, []byte("\n#"))
}
