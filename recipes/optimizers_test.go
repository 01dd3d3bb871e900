package recipes

import (
	"slices"
	"strings"
	"testing"
)

// The table has a line for each word of optim.name, and an unknown word gets no defaults.
func TestOptimizersTable(t *testing.T) {
	var names []string
	for _, o := range optimizers {
		names = append(names, o.name)
		if !(o.lr > 0 && o.eps > 0 && o.highDecay > 0) || len(o.uses) == 0 {
			t.Errorf("%+v", o)
		}
		for _, k := range o.uses {
			if byKey()[k] == nil {
				t.Errorf("%s uses %s, which is no key", o.name, k)
			}
		}
	}
	if want := byKey()["optim.name"].oneOf; !slices.Equal(names, want) {
		t.Errorf("the table has %v, the schema %v", names, want)
	}
	_, err := Decode("[run]\nepochs = 1\n[data]\nkind = \"synthetic\"\n[optim]\nname = \"adamax\"\n", "x.toml")
	if err == nil || !strings.Contains(err.Error(), `x.toml:6: optim.name: unknown value "adamax"`) || strings.Contains(err.Error(), "optim.lr") {
		t.Errorf("got %v", err)
	}
}
