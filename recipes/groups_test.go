package recipes

import (
	"strings"
	"testing"
)

const groupsText = `
[run]
steps = 3
[data]
kind = "synthetic"
[model]
freeze = "conv1.* bn1.*"
[[optim.group]]
name = "head"
match = "fc.*"
lr_factor = 10
[[optim.group]]
name = "late"
match = "layer4.*  layer3.*"
weight_decay = 0.0
`

// Groups survive being written and read again, in tables or inline, in a file or on the command line.
func TestGroups(t *testing.T) {
	r, err := Decode(groupsText, "a")
	if err != nil {
		t.Fatal(err)
	}
	g := r.ParamGroups()
	if len(g) != 3 || !g[0].Frozen || g[1].Name != "head" || *g[1].LRFactor != 10 || g[1].WeightDecay != nil || *g[2].WeightDecay != 0 || g[2].LRFactor != nil {
		t.Fatalf("%+v", g)
	}
	again, err := Decode(r.String(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != r.String() || !strings.Contains(r.String(), `group = [{name = "head", match = "fc.*", lr_factor = 10.0}, {name = "late"`) {
		t.Errorf("written and read again:\n%s", again)
	}
	set, err := Decode("[run]\nsteps = 3\n[data]\nkind = \"synthetic\"", "c", `optim.group=[{name = "head", match = "fc.*", frozen = true}]`)
	if err != nil || len(set.Optim.Groups) != 1 || !set.Optim.Groups[0].Frozen {
		t.Errorf("on the command line: %v %+v", err, set)
	}
	if s := r.Settings(); s["optim.group"] == "" || s["model.freeze"] == "" {
		t.Errorf("settings lack the groups: %v", s)
	}
}

func TestGroupFaults(t *testing.T) {
	for text, wants := range map[string][]string{
		"[[optim.group]]\nname = \"a\"\nmtach = \"fc.*\"":                               {`unknown key "mtach"; did you mean match?`},
		"[[optim.group]]\nname = \"a\"\nmatch = 3":                                      {"match needs text, got 3"},
		"[optim]\ngroup = \"head\"":                                                     {"needs a list of tables", `name = "head"`},
		"[optim]\ngroup = [1]":                                                          {"element 1 is 1"},
		"[[optim.group]]\nmatch = \"[\"\nlr_factor = 0\nweight_decay = -1\n":            {"group 1 has no name", "not a pattern", "lr_factor must be above 0", "must lie in 0…10"},
		"[[optim.group]]\nname = \"a\"\nmatch = \"b\"\nfrozen = true\nlr_factor = 2.0":  {"is frozen"},
		"[[optim.group]]\nname = \"a\"\nmatch = \"b\"\n[[optim.group]]\nname = \"a\"\n": {"two groups", "matches nothing"},
		"[model]\nfreeze = \"a[\"":                                                      {"model.freeze", "not a pattern"},
	} {
		_, err := Decode("[run]\nsteps = 3\n"+text+"\n[data]\nkind = \"synthetic\"\n", "a")
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", text, want, err)
			}
		}
	}
}

func TestMonitorKeys(t *testing.T) {
	base := "[run]\nsteps = 3\n[data]\nkind = \"synthetic\"\n"
	for text, want := range map[string]string{
		"[eval]\npatience = 2":                                                 "requires evaluations during the run",
		"[schedule]\nkind = \"plateau\"":                                       "requires evaluations during the run",
		"[eval]\nenabled = false\n[checkpoint]\nkeep_best = true":              "requires evaluations",
		"[checkpoint]\nenabled = false\nkeep_best = true":                      "requires checkpoints",
		"[eval]\nevery_steps = 1\n[schedule]\nkind = \"plateau\"\ngamma = 1.0": "must be below 1",
		"[eval]\nmonitor = \"\"":                                               "is empty",
		"[eval]\nmonitor_mode = \"up\"":                                        "unknown value",
	} {
		if _, err := Decode(base+text, "a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q is not in: %v", text, want, err)
		}
	}
	r, err := Decode(base+"[eval]\nmonitor = \"top1\"\n[optim]\nema_warmup = false\n", "a")
	if w := strings.Join(r.Warnings(), "\n"); err != nil || len(r.Warnings()) != 2 || !strings.Contains(w,
		`eval.monitor: has no effect without eval.patience, checkpoint.keep_best or schedule.kind = "plateau"`) ||
		!strings.Contains(w, "ema_warmup: has no effect without optim.ema_decay > 0") {
		t.Errorf("keys without effect: %v %v", err, r.Warnings())
	}
	r, err = Decode(base+"[eval]\nmonitor = \"top1\"\nevery_steps = 1\npatience = 3\n[optim]\nema_decay = 0.99\nema_warmup = false\n"+
		"[checkpoint]\nkeep_best = true\nresume = \"best\"", "a")
	if err != nil || len(r.Warnings()) != 0 {
		t.Errorf("keys with effect: %v %v", err, r.Warnings())
	}
}
