package main

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// validate opens every file when it is asked to, and lists all that are bad, held-out ones too; it does not when it is not asked.
func TestValidateFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, good bool) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if !good {
			_, err = f.WriteString("<html>404</html>")
		} else {
			err = png.Encode(f, image.NewRGBA(image.Rect(0, 0, 20, 20)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []string{"cat", "dog"} {
		for _, name := range []string{"1.png", "2.png", "3.png"} {
			write(filepath.Join("train", class, name), class+name != "dog2.png")
			write(filepath.Join("val", class, name), class+name != "cat3.png")
		}
	}
	recipe := filepath.Join(t.TempDir(), "r.toml")
	text := "[run]\nsteps = 1\n[model]\ndepth = 18\nwidth = 4\nsmall_stem = true\n[data]\nkind = \"imagefolder\"\nroot = \"" + dir + "\"\nimage_size = 16\n" +
		"[train]\nbatch_per_rank = 2\n[optim]\nlr = 0.1\n"
	if err := os.WriteFile(recipe, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := cli(t, "validate", recipe); code != 0 {
		t.Fatalf("without --files: code %d\n%s", code, errs)
	}
	_, errs, code := cli(t, "validate", recipe, "--files")
	for _, want := range []string{"2 of 12 samples", filepath.Join("train", "dog", "2.png"), filepath.Join("val", "cat", "3.png"), "hint:"} {
		if code != launch.ExitNoInput || !strings.Contains(errs, want) {
			t.Errorf("code %d, %q is not in\n%s", code, want, errs)
		}
	}
	out, _, code := cli(t, "validate", recipe, "--files", "--json")
	var v struct {
		Valid    bool
		Problems []problem
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != launch.ExitNoInput || v.Valid || len(v.Problems) != 2 {
		t.Errorf("code %d, %+v, %v", code, v, err)
	}
}
