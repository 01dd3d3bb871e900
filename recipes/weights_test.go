package recipes

import (
	"os"
	"path/filepath"
	"testing"
)

// Weights lie beside the recipe or, where they are not, in the working directory.
func TestWhereWeightsLie(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	for _, p := range []string{filepath.Join(dir, "both"), filepath.Join(cwd, "both"), filepath.Join(cwd, "here")} {
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"both": filepath.Join(dir, "both"), "here": "here", "./here": filepath.Join(dir, "here"), "gone": "gone", "./gone": filepath.Join(dir, "gone"),
		"/abs": "/abs",
	} {
		p := filepath.Join(dir, "r.toml")
		if err := os.WriteFile(p, []byte("[run]\nsteps = 1\n[data]\nkind = \"synthetic\"\n[model]\ninit_from = "+quote(name)), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := Load(p); err != nil || r.Model.InitFrom != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
