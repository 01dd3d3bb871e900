package recipes

import (
	"slices"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	texts := func(word string) (out []string) {
		for _, c := range Complete(word) {
			out = append(out, c.Text)
		}
		return out
	}
	for word, want := range map[string][]string{
		"train.d":                {"train.dtype=", "train.device=", "train.device_options="},
		"train.dtype=":           {"train.dtype=f32", "train.dtype=bf16", "train.dtype=f16"},
		"optim.name=ada":         {"optim.name=adamw", "optim.name=adam"},
		"eval.enabled=f":         {"eval.enabled=false"},
		"data.crop_area=":        {"data.crop_area=[0.08,1.0]"},
		"optim.lr=":              nil,
		"nothing.here=":          nil,
		"optim.name=sgd,nothing": nil,
	} {
		if got := texts(word); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if n := len(Complete("")); n != len(byKey()) {
		t.Errorf("%d of %d keys are offered", n, len(byKey()))
	}
	// What is offered as whole is accepted, whatever else it would need: no problem is about the value itself.
	for key := range byKey() {
		for _, c := range Complete(key + "=") {
			_, err := Open("quickstart", c.Text)
			if err != nil && strings.Contains(err.Error(), key+": unknown value") || err != nil && strings.Contains(err.Error(), key+": must be a") {
				t.Errorf("%s is offered: %v", c.Text, err)
			}
		}
		for _, c := range Complete(key) {
			if c.Doc == "" || strings.Contains(c.Doc, "\n") || c.Final {
				t.Errorf("%+v", c)
			}
		}
	}
}
