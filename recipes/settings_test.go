package recipes

import "testing"

func TestSettings(t *testing.T) {
	for _, key := range freeKeys {
		if byKey[key] == nil {
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
