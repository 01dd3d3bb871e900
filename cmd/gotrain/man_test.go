package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// There is a page for each verb, with all of its flags and examples, and what reads manuals has nothing to complain about.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	out, errs, code := cli(t, "docs", "man", "--out", dir)
	if code != 0 || !strings.Contains(out, "pages in "+dir) {
		t.Fatalf("code %d, %s%s", code, out, errs)
	}
	for name, want := range map[string][]string{
		"gotrain":              {".SH NAME\ngotrain \\- Train", "SH EXIT STATUS", "   75  ", "gotrain\\-run(1)", "\\-\\-log\\-level"},
		"gotrain-run":          {"\\fB\\-\\-set\\fR \\fIsection.key=value\\fR", "mpirun \\-np 4", "gotrain(1)", ".SH OPTIONS OF ALL VERBS"},
		"gotrain-recipes-show": {"SH SYNOPSIS\n.B gotrain recipes show NAME", "gotrain\\-recipes(1)"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "gotrain-docs.1")); err == nil {
		t.Error("a hidden verb has a page")
	}
	if man, err := exec.LookPath("groff"); err == nil {
		out, err := exec.Command(man, "-man", "-Tutf8", "-ww", filepath.Join(dir, "gotrain-run.1")).CombinedOutput()
		if err != nil || strings.Contains(string(out), "warning:") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if got := roff(".a\n'b\\c-d"); got != "\\&.a\n\\&'b\\ec\\-d" {
		t.Errorf("%q", got)
	}
}
