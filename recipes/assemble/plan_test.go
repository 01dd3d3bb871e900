package assemble

import (
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// Each family of recipes can be built, and each row here belongs to one.
func TestFamilies(t *testing.T) {
	for _, name := range recipes.Families() {
		r := recipes.Default()
		r.Model.Name = name
		f, err := familyOf(r)
		if err != nil || f.model == nil || f.synthetic == nil || f.sample == nil || f.planned == nil {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	for name := range families() {
		if !slices.Contains(recipes.Families(), name) {
			t.Errorf("no family %s", name)
		}
	}
}

// ImageNet is planned without ImageNet, and the numbers are those of the published set: 1,281,167 / 2,048 = 625 steps an epoch.
func TestPlanWithoutData(t *testing.T) {
	c, assumed, err := Plan(t.Context(), recipe(t, "resnet50-imagenet", "train.ranks=64"), rank(64), false)
	if err != nil {
		t.Fatal(err)
	}
	if c.Data.Len() != 1281167 || len(c.Data.Classes()) > 1000 || !assumed.Epoch || !strings.Contains(assumed.Why, `not found: no data set "imagenet"`) ||
		!slices.Equal(assumed.Counts, []string{"model.classes = 1,000", "data.image_size = 224", "data.published_samples = 1,281,167"}) {
		t.Errorf("%d samples, %+v", c.Data.Len(), assumed)
	}
	// Data that are here are looked at, unless that is not wanted.
	c, assumed, err = Plan(t.Context(), recipe(t, "resnet50"), rank(2), false)
	if err != nil || assumed != nil || c.Data.Len() != 300 {
		t.Errorf("%+v, %v", assumed, err)
	}
	c, assumed, err = Plan(t.Context(), recipe(t, "resnet50", "data.published_samples=5000", "model.classes=7"), rank(2), true)
	if err != nil || assumed == nil || c.Data.Len() != 5000 {
		t.Errorf("%+v, %v", assumed, err)
	}
	// So is a vision transformer: its recipe is for ImageNet, too.
	if c, assumed, err = Plan(t.Context(), recipe(t, "deit-s", "train.ranks=8"), rank(8), false); err != nil || assumed == nil || !assumed.Epoch ||
		c.Data.Len() != 1281167 {
		t.Errorf("%+v, %v", assumed, err)
	}
	// A run in steps needs no number of samples.
	for _, name := range []string{"llama2-7b", "llama3-8b", "llama2-70b"} {
		if _, assumed, err := Plan(t.Context(), recipe(t, name), rank(8), false); err != nil || assumed == nil || assumed.Epoch {
			t.Errorf("%s: %+v, %v", name, assumed, err)
		}
	}
}

// What a plan lacks is asked for, all of it at once.
func TestPlanLacks(t *testing.T) {
	for sets, want := range map[string][]string{
		"resnet50 data.root=nowhere":                                                         {"--samples N", "--classes N"},
		"quickstart data.root=nowhere data.image_size=0 data.augment=none":                   {"--classes N", "data.image_size=N"},
		"llama2-7b schedule.warmup_steps=0 schedule.warmup_epochs=1":                         {"--samples N"},
		"llama-tiny data.root=nowhere llama.size= llama.dim=64 llama.layers=1 llama.heads=1": {"llama.vocab"},
		"llama-finetune data.root=nowhere model.init_from=nowhere":                           {"llama.size"},
	} {
		f := strings.Fields(sets)
		_, _, err := Plan(t.Context(), recipe(t, f[0], f[1:]...), rank(1), false)
		if launch.ExitCode(err) != launch.ExitNoInput {
			t.Errorf("%s: %v", sets, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: no %q in %v", sets, w, err)
			}
		}
	}
}
