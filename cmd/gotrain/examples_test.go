package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/recipes"
)

// example is a command line that users are told to type.
type example struct{ where, line string }

// examples are those of --help, of the package documentation and of the Markdown files.
func examples(t *testing.T) []example {
	t.Helper()
	var out []example
	add := func(where, text string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); strings.Contains(" "+line, " gotrain ") || strings.HasPrefix(line, "bin/gotrain ") {
				out = append(out, example{where, line})
			}
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Example != "" {
			add(c.CommandPath()+" --help", c.Example)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{out: io.Discard, err: io.Discard}).root())
	fence := regexp.MustCompile("(?s)```sh\n(.*?)```")
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fence.FindAllSubmatch(text, -1) {
			add(filepath.Base(name), string(block[1]))
		}
	}
	script, err := os.ReadFile("../../scripts/quickstart.sh")
	if err != nil {
		t.Fatal(err)
	}
	add("quickstart.sh", strings.ReplaceAll(strings.ReplaceAll(string(script), ` "$@"`, ""), "exec ", ""))
	for _, name := range recipes.List() {
		for line := range strings.Lines(recipes.Text(name)) {
			if line, ok := strings.CutPrefix(line, "#   "); ok {
				add(name+".toml", line)
			}
		}
	}
	if len(out) < 50 {
		t.Fatalf("only %d examples found", len(out))
	}
	return out
}

// words are the arguments of gotrain in an example: without what launches it, comments, and what reads its output.
func words(line string) []string {
	var out []string
	quoted := false
	word := ""
	flush := func() {
		if word != "" {
			out = append(out, word)
		}
		word = ""
	}
	for i, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
			if word == "" && !quoted {
				out = append(out, "")
			}
		case !quoted && (r == '|' || r == '#' || r == '&' || r == '>' || r == '<' || r == ';') && (i == 0 || line[i-1] == ' '):
			flush()
			return clean(out)
		case !quoted && r == ' ':
			flush()
		default:
			word += string(r)
		}
	}
	flush()
	return clean(out)
}

// clean drops what stands before gotrain and gotrain itself.
func clean(all []string) []string {
	for i, w := range all {
		if w == "gotrain" || w == "bin/gotrain" {
			return all[i+1:]
		}
	}
	return nil
}

// Every command line that is written down somewhere is accepted; those that need neither hardware nor files of the reader's are run.
func TestExamples(t *testing.T) {
	all := examples(t)
	t.Chdir(t.TempDir())
	ran := map[string]int{}
	done := map[string]bool{}
	for _, e := range all {
		args := words(e.line)
		if len(args) == 0 || done[strings.Join(args, "\x00")] {
			continue
		}
		done[strings.Join(args, "\x00")] = true
		mine := "quickstart"
		if e.where == "llama.md" {
			mine = "llama-tiny"
		}
		if err := os.WriteFile("my.toml", []byte(recipes.Text(mine)), 0o644); err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(args, "--measured"); i >= 0 { // the metrics of a run
			_ = os.MkdirAll(filepath.Dir(args[i+1]), 0o755)
			if err := os.WriteFile(args[i+1], []byte(`{"event":"step","compute_time":3,"step_time":4,"wait_time":0}`+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		root := (&app{out: io.Discard, err: io.Discard}).root()
		c, rest, err := root.Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil && c.Args != nil {
			err = c.Args(c, c.Flags().Args())
		}
		if err != nil || c == root && len(c.Flags().Args()) > 0 {
			t.Errorf("%s: %s\n%v", e.where, e.line, err)
			continue
		}
		switch verb := c.Name(); {
		case verb == "plan" || verb == "version" || verb == "list" || verb == "show" || verb == "recipes":
			ran[verb]++
			if verb == "plan" {
				args = append([]string{verb, "--set", "log.peak_tflops=1"}, append(args[1:], "--set", "train.device=ref")...)
			}
			if _, errs, code := cli(t, args...); code != 0 {
				t.Errorf("%s: %s\n%s", e.where, e.line, errs)
			}
		case verb == "run" || verb == "validate": // whether the recipe is right; training takes its own tests
			ran[verb]++
			args[0] = "validate"
			if args[1] == "-" {
				args[1] = "my.toml"
			}
			args = slices.DeleteFunc(args, func(a string) bool { return a == "--files" }) // the data are not there
			if _, errs, code := cli(t, append(args, "--no-data")...); code != 0 {
				t.Errorf("%s: %s\n%s", e.where, e.line, errs)
			}
		default:
			ran["parsed"]++
		}
	}
	for _, verb := range []string{"plan", "run", "validate", "list", "show", "parsed"} {
		if ran[verb] == 0 {
			t.Errorf("no example of %s was looked at", verb)
		}
	}
	t.Log(ran)
}
