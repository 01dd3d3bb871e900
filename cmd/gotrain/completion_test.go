package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Keys and values behind --set are completed, in the form that every shell's script asks for.
func TestCompleteSet(t *testing.T) {
	for word, want := range map[string]string{
		"train.dt":        "train.dtype=\tType of activations",
		"train.dtype=b":   "train.dtype=bf16\n:4\n", // no files
		"schedule.kind=c": "schedule.kind=constant\nschedule.kind=cosine\n:4\n",
		"data.root=":      ":0\n", // files
	} {
		for _, verb := range []string{"run", "validate", "plan"} {
			out, _, code := cli(t, "__complete", verb, "quickstart", "--set", word)
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s %s: code %d\n%s", verb, word, code, out)
			}
		}
	}
	if out, _, _ := cli(t, "__complete", "run", "res"); !strings.Contains(out, "resnet50-imagenet\t") {
		t.Errorf("recipes:\n%s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, code := cli(t, "completion", shell); code != 0 || !strings.Contains(out, "__complete") {
			t.Errorf("%s: code %d, %s", shell, code, errs)
		}
	}
}

// bash takes a = for the end of a word: what is inserted is the value alone.
func TestCompleteSetInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script, _, _ := cli(t, "completion", "bash")
	file := filepath.Join(t.TempDir(), "script")
	// The helper of the package bash-completion, as it splits words without = and :.
	const helper = `_get_comp_words_by_ref() { cur="${COMP_LINE##* }"; prev=--set; read -ra words <<<"$COMP_LINE"; cword=$((${#words[@]}-1)); }
__ltrim_colon_completions() { :; }
`
	const ask = `
COMP_LINE="gotrain run quickstart --set $1" COMP_POINT=${#COMP_LINE}
COMP_POINT=${#COMP_LINE} COMP_WORDS=(gotrain run quickstart --set "$1") COMP_CWORD=4 COMP_TYPE=63
gotrain() { "$SELF" "$@"; }
__gotrain_values
printf '%s\n' "${COMPREPLY[@]}"
`
	if err := os.WriteFile(file, []byte(helper+script+ask), 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"optim.name=ad": "adamw adam", "train.dty": "train.dtype=", "train.dtype=": "f32 bf16 f16"} {
		cmd := exec.Command(bash, "--norc", file, word)
		cmd.Env = append(os.Environ(), "GOTRAIN_TEST_MAIN=1", "SELF="+self)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		got := strings.Join(strings.Fields(string(out)), " ")
		if err != nil || !strings.HasPrefix(got, want) || strings.Contains(want, " ") && got != want {
			t.Errorf("%s: %q, want %q; %v\n%s", word, got, want, err, errs.String())
		}
	}
}

func TestRecipesListJSON(t *testing.T) {
	out, errs, code := cli(t, "recipes", "list", "--json")
	var all []listedRecipe
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || len(all) < 9 || all[0].Name == "" || all[0].Summary == "" {
		t.Errorf("code %d, %v\n%s%s", code, err, out, errs)
	}
}
