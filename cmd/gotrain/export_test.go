package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

const stories = "../../recipes/data/stories260k"

func TestExportHelp(t *testing.T) {
	out, errs, code := cli(t, "export", "--help")
	if code != 0 || errs != "" || !strings.Contains(out, "Examples:") {
		t.Errorf("code %d, %s", code, errs)
	}
	golden(t, "help-export.txt", out)
}

// Out and back through every format, and inspect shows each for what it is. The formats themselves are tested in package llamafile.
func TestExportAndInspect(t *testing.T) {
	dir := t.TempDir()
	tok := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(tok, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	bin, meta, hf := filepath.Join(dir, "s.bin"), filepath.Join(dir, "meta"), filepath.Join(dir, "hf")
	for _, c := range []struct {
		args, out, shows string
	}{
		{"--from " + stories + " --format llama2c --to " + bin, "hf as llama2c, 260,032 parameters in 47 tensors, F32, 1 file, 1.0 MiB", "llama2c v0"},
		{"--from " + bin + " --format meta --to " + meta, "llama2c v0 as meta, 260,032 parameters in 47 tensors, F32, 2 files", "meta"},
		{"--from " + meta + " --format hf --tokenizer " + tok + " --to " + hf, "meta as hf, 260,032 parameters in 47 tensors, F32, 4 files", "hf"},
		{"--from " + hf + " --format hf --force --dtype bf16 --to " + filepath.Join(dir, "half"), "BF16, 4 files, 513.3 KiB", "hf"},
	} {
		out, errs, code := cli(t, append([]string{"export"}, strings.Fields(c.args)...)...)
		if code != 0 || errs != "" || !strings.Contains(out, c.out) {
			t.Fatalf("export %s: code %d\n%s%s", c.args, code, out, errs)
		}
		to := strings.Fields(c.args)[len(strings.Fields(c.args))-1]
		out, errs, code = cli(t, "inspect", to, "--tensors")
		for _, want := range []string{"format      " + c.shows + "\n", "model       stories260k", "8 of width 8 over 4", "parameters  260,032",
			"model.layers.4.self_attn.k_proj.weight", "[32 64]"} {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				t.Errorf("inspect %s: code %d, no %q in\n%s%s", to, code, want, out, errs)
			}
		}
	}
	before, after := tensorsOf(t, stories), tensorsOf(t, hf)
	for name, x := range before {
		if !slices.Equal(x, after[name]) {
			t.Errorf("%s changed on its way round", name)
		}
	}
	js, _, _ := cli(t, "inspect", bin, "--json")
	var in weightsInspection
	if err := json.Unmarshal([]byte(js), &in); err != nil || in.Config == nil || in.Config.Heads != 8 || in.DTypes["F32"] != 47 || in.Bytes != 4*260032 {
		t.Errorf("%v\n%s", err, js)
	}
}

func TestExportErrors(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, "half") // weights alone
	if err := os.MkdirAll(half, 0o777); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(stories, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "model.safetensors"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"export --to x --format hf":                                                      {launch.ExitUsage, `"from" not set`},
		"export --from " + stories + " --to " + dir + "/x --format gguf":                 {launch.ExitUsage, "one of hf, llama2c, meta"},
		"export --from " + stories + " --to " + dir + "/x --format hf --dtype i8":        {launch.ExitUsage, "one of f32, bf16, f16"},
		"export --from " + dir + "/none --to " + dir + "/x --format hf":                  {launch.ExitNoInput, "no checkpoint"},
		"export --from " + half + " --to " + dir + "/x --format hf":                      {launch.ExitNoInput, "there is no config.json\nhint: "},
		"export --from " + stories + " --to " + half + " --format hf":                    {launch.ExitStorage, "it already exists\nhint: "},
		"export --from " + stories + " --to " + dir + "/x --format hf --context 9999":    {launch.ExitUsage, "--context 9999"},
		"export --from " + stories + " --to " + dir + "/x --format llama2c --dtype bf16": {launch.ExitUsage, "f32 only"},
		"export --from " + stories + " --to " + dir + "/x --format hf --tokenizer none":  {launch.ExitNoInput, "--tokenizer: "},
		"inspect " + stories + " --recipe":                                               {launch.ExitUsage, "has no recipe"},
		"inspect export_test.go":                                                         {launch.ExitNoInput, "not a Llama in a known format"},
	} {
		out, errs, code := cli(t, strings.Fields(args)...)
		if code != want.code || out != "" || !strings.Contains(errs, want.text) {
			t.Errorf("%s: code %d, want %d, stdout %q, stderr %s", args, code, want.code, out, errs)
		}
	}
	if out, errs, code := cli(t, "inspect", half); code != 0 ||
		!strings.Contains(out, "safetensors, names of a Llama, but the model has no configuration") ||
		!strings.Contains(out, "260,032") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	out, errs, code := cli(t, "export", "--from", half, "--config", stories, "--format", "hf", "--to", dir+"/y", "--context", "64", "--json")
	if code != 0 || !strings.Contains(errs, "warning: the context is shortened from 512 to 64") || !strings.Contains(out, `"parameters": 260032`) {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}

// What a checkpoint holds is exported after it was verified, from the newest good one of a folder.
func TestExportCheckpoint(t *testing.T) {
	dir := t.TempDir()
	root, out := filepath.Join(dir, "checkpoints"), filepath.Join(dir, "out")
	saveStories(t, root, true, "")
	text, errs, code := cli(t, "export", "--from", root, "--to", out, "--format", "llama2c")
	if code != 0 || errs != "" || !strings.Contains(text, "gotrain as llama2c, 260,032 parameters") {
		t.Fatalf("code %d\n%s%s", code, text, errs)
	}
	if text, errs, code = cli(t, "inspect", root); code != 0 || !strings.Contains(text, "stories260k") {
		t.Errorf("code %d\n%s%s", code, text, errs)
	}
	weights := filepath.Join(root, "step-00000007", checkpoint.ModelFile)
	raw, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-5] ^= 1
	if err := os.WriteFile(weights, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code = cli(t, "export", "--from", root, "--to", out+"2", "--format", "hf"); code != launch.ExitNoInput ||
		!strings.Contains(errs, "are not those that were saved") {
		t.Errorf("a damaged checkpoint: code %d, %s", code, errs)
	}
	saveStories(t, filepath.Join(dir, "bare"), false, "")
	if _, errs, code = cli(t, "export", "--from", filepath.Join(dir, "bare"), "--to", out+"3", "--format", "hf"); code != launch.ExitNoInput ||
		!strings.Contains(errs, "--config") {
		t.Errorf("without a configuration: code %d, %s", code, errs)
	}
}

func tensorsOf(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	set, err := safetensors.OpenSet(path)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	out := map[string][]float32{}
	for _, name := range set.Names() {
		if out[name], err = set.Float32s(name); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Where a checkpoint has no config.json, the recipe in it says what the model is.
func TestExportByRecipe(t *testing.T) {
	dir := t.TempDir()
	saveStories(t, filepath.Join(dir, "ck"), false,
		"[model]\nname = \"llama\"\n[run]\nsteps = 1\n[llama]\nsize = \"stories260k\"\n[data]\nkind = \"synthetic\"\n")
	text, errs, code := cli(t, "export", "--from", filepath.Join(dir, "ck"), "--to", filepath.Join(dir, "out"), "--format", "llama2c")
	if code != 0 || errs != "" || !strings.Contains(text, "gotrain as llama2c, 260,032 parameters") {
		t.Errorf("code %d\n%s%s", code, text, errs)
	}
	saveStories(t, filepath.Join(dir, "other"), false, "[model]\nname = \"resnet\"\n[run]\nsteps = 1\n[data]\nkind = \"synthetic\"\n")
	if _, errs, code = cli(t, "export", "--from", filepath.Join(dir, "other"), "--to", filepath.Join(dir, "x"), "--format", "hf"); code != launch.ExitNoInput ||
		!strings.Contains(errs, "model.name = \"resnet\" is not a llama") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// saveStories makes a checkpoint as the trainer does.
func saveStories(t *testing.T, root string, config bool, recipe string) {
	t.Helper()
	set, err := safetensors.OpenSet(stories)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	f := checkpoint.TensorFile{Name: checkpoint.ModelFile, Data: func(x safetensors.Tensor, w io.Writer) error {
		_, file, _ := set.Lookup(x.Name)
		raw, err := file.Bytes(x.Name)
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}}
	for _, name := range set.Names() {
		x, _, _ := set.Lookup(name)
		f.Tensors = append(f.Tensors, x)
	}
	c := checkpoint.Content{State: checkpoint.State{Step: 7, Recipe: recipe}, Files: []checkpoint.TensorFile{f}}
	if config {
		raw, err := os.ReadFile(filepath.Join(stories, llamafile.ConfigFile))
		if err != nil {
			t.Fatal(err)
		}
		c.Beside = map[string][]byte{llamafile.ConfigFile: raw}
	}
	if _, err := checkpoint.New(checkpoint.OS{}, root, 2).Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
