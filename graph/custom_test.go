package graph_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOpFromOutside builds the module of docs/custom-ops.md, which adds an op kind without a change here, and runs its tests: gradient, devices,
// training. The code of the page is the code of the test.
func TestOpFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	blocks := regexp.MustCompile("(?s)```go\n// (\\S+\\.go)\n(.*?)```").FindAllStringSubmatch(read("docs/custom-ops.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of code with a file name", len(blocks))
	}
	for _, b := range blocks {
		write(b[1], b[2])
	}
	// The versions of this module, so that nothing is looked for.
	mod := strings.Replace(read("go.mod"), "module github.com/gotrain/gotrain\n", "module example.com/softsign\n", 1)
	write("go.mod", mod+"\nrequire github.com/gotrain/gotrain v0.0.0\n\nreplace github.com/gotrain/gotrain => "+root+"\n")
	write("go.sum", read("go.sum"))
	cmd := exec.Command("go", "test", "-mod=mod", "-v", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"--- PASS: TestGradient", "--- PASS: TestOnDevices", "--- PASS: TestTrains", "ok   softsign f32, all signs"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("does not say %q", want)
		}
	}
	if err != nil || t.Failed() {
		t.Errorf("%v\n%s", err, out)
	}
}
