package recipes

import (
	"strings"
	"testing"
)

func TestRanksAuto(t *testing.T) {
	asked := ""
	eight := func(device string) int { asked = device; return 8 }
	none := func(string) int { return 0 }
	for _, c := range []struct {
		text  string
		set   string
		count func(string) int
		want  int
	}{
		{"", "", eight, 8},
		{"", "", none, 1},
		{"[train]\nranks = \"auto\"\n", "", eight, 8},
		{"[train]\nranks = 2\n", "", eight, 2},
		{"[train]\nranks = 2\n", "train.ranks=auto", eight, 8},
		{"[train]\nranks = \"auto\"\n", "train.ranks=3", eight, 3},
	} {
		sets := []string{"run.steps=1", "data.kind=synthetic", "train.device=ref"}
		if c.set != "" {
			sets = append(sets, c.set)
		}
		r, err := Decode(c.text, "x.toml", sets...)
		if err != nil {
			t.Fatal(err)
		}
		if r.CountRanks(c.count); r.Train.Ranks != c.want || r.Chose("train.ranks") == (c.want != 2 && c.want != 3) {
			t.Errorf("%q %q: %d ranks, want %d", c.text, c.set, r.Train.Ranks, c.want)
		}
		if !strings.Contains(r.String(), "\nranks = ") {
			t.Error("the recipe that is stored lacks the number of ranks")
		}
	}
	if asked != "ref" {
		t.Errorf("devices of %q were counted", asked)
	}
	if _, err := Decode("[train]\nranks = \"many\"\n", "x.toml"); err == nil {
		t.Error("another word is accepted")
	}
}
