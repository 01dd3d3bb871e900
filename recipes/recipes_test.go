package recipes

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

var update = flag.Bool("update", false, "rewrite golden files; look at the difference before committing it")

// golden compares with a checked-in file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from the program's output; review it after: go test ./recipes -update\n%s", path, diff(string(want), got))
	}
}

// diff shows the first line that differs.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "", ""
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return "want " + a + "\n got " + b
		}
	}
	return ""
}

// The schema is a promise to everybody who has a recipe: a change of it must be seen.
func TestSchemaIsFrozen(t *testing.T) {
	var b strings.Builder
	for _, s := range schema() {
		for _, f := range s.fields {
			b.WriteString(f.key() + " | " + f.typeCell() + " | " + f.defaultCell() + "\n")
		}
	}
	golden(t, filepath.Join("testdata", "schema.txt"), b.String())
}

func TestReferenceIsFresh(t *testing.T) {
	golden(t, filepath.Join("..", "docs", "recipes.md"), Reference())
}

func TestSchemaIsComplete(t *testing.T) {
	for _, s := range schema() {
		if s.name == "" || s.doc == "" {
			t.Errorf("section %q has no name or no documentation", s.name)
		}
		for _, f := range s.fields {
			if f.name == "" || !strings.HasSuffix(f.doc, ".") {
				t.Errorf("%s: no name, or its documentation is no sentence: %q", f.key(), f.doc)
			}
			if f.auto != "" && f.def != "auto" {
				t.Errorf("%s: has a derivation and the default %q", f.key(), f.def)
			}
		}
	}
}

// Every recipe that comes with gotrain is right and gives no reason for a warning, and what it resolves to is checked in.
func TestShippedRecipes(t *testing.T) {
	if got := strings.Join(List(), " "); got != "deit-s llama-finetune llama-tiny llama2-70b llama2-7b llama3-8b quickstart resnet50-a2 "+
		"resnet50-finetune resnet50-imagenet resnet50 vit-tiny" {
		t.Errorf("recipes in the binary: %s", got)
	}
	for _, name := range List() {
		r, err := Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w := r.Warnings(); len(w) > 0 {
			t.Errorf("%s: warnings %q", name, w)
		}
		if len(Summary(name)) < 20 {
			t.Errorf("%s: no summary", name)
		}
		golden(t, filepath.Join("testdata", name+".resolved.toml"), r.String())
	}
}

// A resolved recipe is a recipe, and resolving it again changes nothing.
func TestRoundTrip(t *testing.T) {
	for _, name := range List() {
		r, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(r.String(), "stored.toml")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, r, again)
		if w := again.Warnings(); len(w) > 0 {
			t.Errorf("%s: the resolved recipe has warnings: %q", name, w)
		}
		if r.Fingerprint() != again.Fingerprint() {
			t.Errorf("%s: another fingerprint after a round trip", name)
		}
	}
}

func same(t *testing.T, a, b *Recipe) {
	t.Helper()
	for _, s := range schema() {
		for _, f := range s.fields {
			if x, y := f.in(a).Interface(), f.in(b).Interface(); !reflect.DeepEqual(x, y) {
				t.Errorf("%s: %v and %v", f.key(), x, y)
			}
		}
	}
}

// Each case is a recipe, a line "----", and all that is said about it. Overrides are lines that begin with "# --set ".
func TestProblems(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "problems", "*.txt"))
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range cases {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, _, ok := strings.Cut(string(raw), "----\n")
		if !ok {
			t.Fatalf("%s has no line ----", file)
		}
		var sets []string
		for line := range strings.Lines(text) {
			if s, ok := strings.CutPrefix(line, "# --set "); ok {
				sets = append(sets, strings.TrimSuffix(s, "\n"))
			}
		}
		r, err := Decode(text, "case.toml", sets...)
		got := ""
		switch {
		case err != nil:
			got = err.Error() + "\n"
			var es Errors
			if !errors.As(err, &es) || launch.ExitCode(err) != launch.ExitRecipe {
				t.Errorf("%s: the error is %T with exit code %d", file, err, launch.ExitCode(err))
			}
		default:
			for _, w := range r.Warnings() {
				got += "warning: " + w + "\n"
			}
		}
		golden(t, file, text+"----\n"+got)
	}
}

func TestOverrides(t *testing.T) {
	r, err := Open("quickstart", "optim.lr=0.5", "run.steps=10", "run.name=my run", "data.mean=0.5", "model.zero_init_residual=false",
		"data.crop_area=0.1, 1", `data.root="quoted"`, "schedule.milestones_epochs=[1,2.5]")
	if err != nil {
		t.Fatal(err)
	}
	if r.Optim.LR != 0.5 || r.Run.Name != "my run" || r.Model.ZeroInitResidual || r.Data.Root != "quoted" {
		t.Errorf("overrides are not in\n%s", r)
	}
	if !reflect.DeepEqual(r.Data.CropArea, []float64{0.1, 1}) || !reflect.DeepEqual(r.Data.Mean, []float64{0.5}) ||
		!reflect.DeepEqual(r.Schedule.MilestonesEpochs, []float64{1, 2.5}) {
		t.Errorf("lists %v %v %v", r.Data.CropArea, r.Data.Mean, r.Schedule.MilestonesEpochs)
	}
	if r.Run.Steps != 10 || r.Run.Epochs != 0 {
		t.Errorf("an override of steps does not replace the epochs of the file: %d, %g", r.Run.Steps, r.Run.Epochs)
	}
	if r.Run.OutputDir != filepath.Join("runs", "my run") || r.Checkpoint.Dir != filepath.Join("runs", "my run", "checkpoints") {
		t.Errorf("folders %s, %s", r.Run.OutputDir, r.Checkpoint.Dir)
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("beside/x", "")
	write("data/below/x", "")
	write("w.safetensors", "")
	for root, want := range map[string]string{
		"./mine": filepath.Join(dir, "mine"), "../up": filepath.Join(filepath.Dir(dir), "up"), "beside": filepath.Join(dir, "beside"),
		"below": filepath.Join(dir, "data", "below"), "flowers": "flowers", "/abs": "/abs",
	} {
		p := write("r.toml", "[run]\nsteps = 1\n[data]\nroot = "+quote(root)+"\n[model]\ninit_from = \"w.safetensors\"\n[checkpoint]\nresume = \"old\"")
		r, err := Load(p)
		if err != nil {
			t.Fatal(err)
		}
		if r.Data.Root != want {
			t.Errorf("root %s becomes %s, want %s", root, r.Data.Root, want)
		}
		if r.Model.InitFrom != filepath.Join(dir, "w.safetensors") || r.Checkpoint.Resume != filepath.Join(dir, "old") || r.Run.Name != "r" ||
			r.Dir() != dir {
			t.Errorf("init_from %s, resume %s, name %s, dir %s", r.Model.InitFrom, r.Checkpoint.Resume, r.Run.Name, r.Dir())
		}
		if r, err = Load(p, "data.root=./here"); err != nil || r.Data.Root != "./here" {
			t.Errorf("an override is not left as it is: %v, %v", r, err)
		}
	}
}

func TestLoadByName(t *testing.T) {
	for _, name := range []string{"quickstart", "quickstart.toml", "recipes/quickstart.toml", "./recipes/quickstart.toml"} {
		r, err := Load(name)
		if err != nil || r.Run.Name != "quickstart" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"quikstart":                 `did you mean "quickstart"?`,
		"elsewhere/quickstart.toml": "no such recipe",
		t.TempDir():                 "it is a directory, not a regular file",
	} {
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := Open("none"); err == nil {
		t.Error("a recipe that is not there was opened")
	}
}

func TestCheckAfterAChangeInGo(t *testing.T) {
	r, err := Open("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	r.Optim.LR = -1
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "optim.lr: must be above 0, got -1") {
		t.Errorf("got %v", err)
	}
}

func TestPeakLR(t *testing.T) {
	for _, c := range []struct {
		scaling string
		batch   int
		want    float64
	}{{"none", 1024, 0.1}, {"linear", 1024, 0.4}, {"sqrt", 1024, 0.2}, {"linear", 128, 0.05}} {
		o := Optim{LR: 0.1, LRScaling: c.scaling, LRBatch: 256}
		if got := o.PeakLR(c.batch); got != c.want {
			t.Errorf("%s %d: %g, want %g", c.scaling, c.batch, got, c.want)
		}
	}
}

// The distance against a dumb twin that follows the definition.
func TestDistance(t *testing.T) {
	var dumb func(a, b string) int
	dumb = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		n, m := len(a), len(b)
		cost := 1
		if a[n-1] == b[m-1] {
			cost = 0
		}
		d := min(dumb(a[:n-1], b)+1, dumb(a, b[:m-1])+1, dumb(a[:n-1], b[:m-1])+cost)
		if n > 1 && m > 1 && a[n-1] == b[m-2] && a[n-2] == b[m-1] {
			d = min(d, dumb(a[:n-2], b[:m-2])+1)
		}
		return d
	}
	words := []string{"", "a", "ab", "ba", "abc", "acb", "lr", "rl", "depth", "detph", "width"}
	for _, a := range words {
		for _, b := range words {
			if got, want := distance(a, b), dumb(a, b); got != want {
				t.Errorf("%q %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

// FuzzDecode: any text is either refused with problems or gives a recipe that survives a round trip.
func FuzzDecode(f *testing.F) {
	for _, name := range List() {
		f.Add(Text(name), "run.steps=3")
	}
	f.Add("[run]\nsteps=1\n[data]\nkind='synthetic'", "data.mean=[0]")
	f.Add("run={steps=1}\ndata.kind='synthetic'\nx=1\n[[model]]", "model")
	f.Fuzz(func(t *testing.T, text, set string) {
		r, err := Decode(text, "fuzz.toml", set)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		again, err := Decode(r.String(), "fuzz.toml")
		if err != nil {
			t.Fatalf("the resolved recipe is refused: %v\n%s", err, r)
		}
		same(t, r, again)
	})
}
