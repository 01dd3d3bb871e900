package recipes

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	for _, key := range freeKeys {
		if byKey()[key] == nil {
			t.Errorf("there is no key %s", key)
		}
	}
	a, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"", "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Decode(
		"[run]\nsteps = 3\n[data]\nkind = \"synthetic\"",
		"b",
		"optim.lr=0.3",
		"train.threads_per_rank=2",
		"log.console=false",
		"run.name=other",
		"model.init_from=/w",
	)
	if err != nil {
		t.Fatal(err)
	}
	was, is := a.Settings(), b.Settings()
	if len(was) != len(is) || len(was) < 40 {
		t.Errorf("%d and %d settings", len(was), len(is))
	}
	for key := range was {
		if changed := was[key] != is[key]; changed != (key == "optim.lr" || key == "model.init_from") {
			t.Errorf("%s: %s -> %s", key, was[key], is[key])
		}
	}
}

// Only the settings of a run in f16 have keys of loss scaling, so that checkpoints from before there were any do not look changed.
func TestSettingsOfLossScaling(t *testing.T) {
	for dtype, want := range map[string]int{"f32": 0, "bf16": 0, "f16": 6} {
		r, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"", "a", "train.dtype="+dtype)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for key := range r.Settings() {
			if strings.HasPrefix(key, "train.loss_scale") {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d keys, want %d", dtype, n, want)
		}
	}
}

// A checkpoint of an older version has these keys and no others. With one more, each of its runs looks changed, and a finished one ends with an error.
func TestSettingsOfOlderVersions(t *testing.T) {
	old, err := os.ReadFile("testdata/settings_keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(string(old))
	r, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"", "a")
	if err != nil {
		t.Fatal(err)
	}
	settings := r.Settings()
	for key := range settings {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is new: make it a free key, or leave it out of the settings where it has its default", key)
		}
	}
	for _, key := range keys {
		if _, ok := settings[key]; !ok {
			t.Errorf("%s is gone: older checkpoints have it", key)
		}
	}
}
