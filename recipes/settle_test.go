package recipes

import (
	"strings"
	"testing"
)

// An override that turns something off turns off what the file asks for beside it, without a contradiction; said twice at one place it is one.
func TestOverrideTurnsOff(t *testing.T) {
	const text = "[run]\nepochs = 1\n[data]\nkind = \"synthetic\"\n[eval]\nevery_epochs = 1\n[checkpoint]\nevery_steps = 5\n"
	r, err := Decode(text, "x.toml", "eval.enabled=false", "checkpoint.enabled=false")
	if err != nil {
		t.Fatal(err)
	}
	if r.Eval.Enabled || r.Eval.EveryEpochs != 0 || r.Checkpoint.Enabled || r.Checkpoint.EverySteps != 0 {
		t.Errorf("eval %+v, checkpoint %+v", r.Eval, r.Checkpoint)
	}
	for _, w := range r.Warnings() {
		if strings.Contains(w, "eval.") || strings.Contains(w, "checkpoint.every_steps") {
			t.Errorf("warning %q", w)
		}
	}
	for _, sets := range [][]string{{"eval.enabled=false", "eval.every_steps=2"}, {"checkpoint.enabled=false", "checkpoint.every_epochs=2"}} {
		if _, err := Decode(text, "x.toml", sets...); err == nil || !strings.Contains(err.Error(), "is false, but") {
			t.Errorf("%v: %v", sets, err)
		}
	}
	if _, err := Decode(strings.Replace(text, "every_epochs", "enabled = false\nevery_epochs", 1), "x.toml"); err == nil ||
		!strings.Contains(err.Error(), "eval.enabled: is false") {
		t.Errorf("in one file: %v", err)
	}
}
