package recipes

import (
	"slices"
	"strings"
	"testing"
)

// The schema and the table of families name the same networks, and every kind of data is for one of them.
func TestFamilies(t *testing.T) {
	allowed := slices.Sorted(slices.Values(byKey()["model.name"].oneOf))
	if got := Families(); !slices.Equal(got, allowed) {
		t.Errorf("the table has %v, model.name allows %v", got, allowed)
	}
	kinds := []string{"synthetic"}
	for _, r := range readings() {
		kinds = append(kinds, r.kinds...)
	}
	for name, keys := range familyKeys() {
		if len(keys) == 0 || readings()[familyOf(name).Reads].kinds == nil {
			t.Errorf("%s: %+v", name, familyOf(name))
		}
		for _, k := range keys {
			if byKey()[k] == nil {
				t.Errorf("%s: no key %s", name, k)
			}
		}
	}
	slices.Sort(kinds)
	if want := slices.Sorted(slices.Values(byKey()["data.kind"].oneOf)); !slices.Equal(kinds, want) {
		t.Errorf("families read %v, data.kind allows %v", kinds, want)
	}
}

// What a family cannot read or do is a problem with its name and a hint.
func TestFamilyRules(t *testing.T) {
	for sets, want := range map[string]string{
		"data.kind=text":                                                     `data.kind: model.name = "resnet" cannot read data.kind = "text" (use imagefolder, csv, webdataset, idx or packed: resnet reads images)`,
		"train.recompute=layer":                                              `train.recompute: "layer" requires a model built from layers, which model.name = "resnet" is not`,
		"model.name=llama llama.size=tiny":                                   `data.kind: model.name = "llama" cannot read data.kind = "idx" (use text or tokens: llama reads text)`,
		"model.name=llama data.kind=synthetic":                               `llama.dim: is required when llama.size is empty`,
		"model.name=lama train.recompute=layer":                              `model.name: unknown value "lama"`,
		"model.name=llama llama.rope_factor=8 llama.rope_high_freq_factor=1": `llama.rope_high_freq_factor: must be above`,
	} {
		_, err := Open("quickstart", strings.Fields(sets)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", sets, err, want)
		}
	}
}
