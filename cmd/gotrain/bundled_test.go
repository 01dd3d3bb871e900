package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere is gotrain as it runs where only the binary was copied to: no source tree, a home of its own.
func elsewhere(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, args...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Dir = self, t.TempDir()
	var env []string
	for _, v := range cmd.Env {
		if key, _, _ := strings.Cut(v, "="); key != "HOME" && key != "XDG_CACHE_HOME" && key != "TMPDIR" && key != "GOTRAIN_DATA" && key != "PWD" {
			env = append(env, v)
		}
	}
	cmd.Env = append(env, "TMPDIR="+cmd.Dir)
	if home != "" {
		cmd.Env = append(cmd.Env, "HOME="+home)
	}
	return cmd
}

// Recipes that say that their data are bundled work from any folder, with any home, and several at a time.
func TestBundledDataWithoutTheSource(t *testing.T) {
	home := t.TempDir()
	var all []*exec.Cmd
	for _, recipe := range []string{"quickstart", "llama-finetune", "quickstart", "llama-tiny", "resnet50"} {
		cmd := elsewhere(t, home, "validate", recipe)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil || !strings.Contains(cmd.Stdout.(*strings.Builder).String(), "is valid: ") {
			t.Errorf("%v: %v\n%s", cmd.Args[1:], err, cmd.Stdout)
		}
	}
	sets, err := filepath.Glob(filepath.Join(home, "*/gotrain/data/*"))
	if more, _ := filepath.Glob(filepath.Join(home, "*/*/gotrain/data/*")); len(sets)+len(more) != 4 { // Library/Caches on macOS
		t.Errorf("unpacked are %v %v, %v", sets, more, err)
	}
}

// Without a home that can be written to the directory for temporary files serves, and a line says so; ranks find what their supervisor unpacked.
func TestBundledDataWithoutAHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", filepath.Join(file, "home")} {
		cmd := elsewhere(t, home, "run", "quickstart", "--set", "run.steps=1", "--set", "train.device=ref", "--set", "train.batch_per_rank=2",
			"--set", "eval.enabled=false", "--set", "eval.every_epochs=0", "--set", "checkpoint.enabled=false")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), "unpacking bundled data to the directory for temporary files") != 1 {
			t.Errorf("HOME=%s: %v\n%s", home, err, out)
		}
	}
	cmd := elsewhere(t, "", "validate", "quickstart")
	cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(file, "tmp"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 66 || !strings.Contains(string(out), "hint: set XDG_CACHE_HOME to a directory that you own") {
		t.Errorf("%v\n%s", err, out)
	}
}
