package assemble

import (
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/data"
)

// Weights of classes are those of the recipe, or scikit-learn's compute_class_weight("balanced").
func TestClassWeights(t *testing.T) {
	src, err := data.FromSlices("four", data.Floats("image", make([]float32, 4)), data.Labels("label", []int{1, 0, 1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set     string
		classes int
		want    []float64
		err     string
	}{
		{"model.class_weighting=none", 2, nil, ""},
		{"model.class_weighting=balanced", 2, []float64{2, 2.0 / 3}, ""},
		{"model.class_weighting=balanced", 3, nil, "class 2 of slices four has no training samples\nhint: set model.class_weights"},
		{"model.class_weights=[0.5, 3]", 2, []float64{0.5, 3}, ""},
		{"model.class_weights=[0.5, 3]", 3, nil, "model.class_weights has 2 numbers, but slices four has 3 classes\nhint: one number a class"},
	} {
		got, err := classWeights(recipe(t, "quickstart", c.set), src, c.classes)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v, want %v, %s", c.set, got, err, c.want, c.err)
		}
	}
	if _, err := classWeights(recipe(t, "quickstart", "model.class_weights=[0.5, 3]"), src, 3); !strings.HasSuffix(err.Error(), "\nhint: one number a class") {
		t.Errorf("the hint for classes without names: %v", err)
	}
	const balanced = "model.class_weighting=balanced"
	for _, c := range []struct {
		want string
		set  []string
	}{
		{"model.class_weights: number 2 must be above 0, got -2", []string{"model.class_weights=[1, -2]"}},
		{`model.class_weighting: must be "none" with model.class_weights`, []string{"model.class_weights=[1, 2]", balanced}},
		{`model.loss: must be "ce" with weights of classes`, []string{"model.loss=bce", balanced}},
		{`"balanced" needs data whose labels are known`, []string{"data.kind=packed", balanced}},
	} {
		if _, err := recipes.Open("quickstart", c.set...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.set, err, c.want)
		}
	}
	r := recipe(t, "quickstart", "model.class_weighting=balanced")
	if s := Loss(r); s != "cross-entropy, classes weighted by their number of samples" {
		t.Error(s)
	}
	if s := r.Settings(); s["model.class_weighting"] == "" || recipe(t, "quickstart").Settings()["model.class_weighting"] != "" {
		t.Error("checkpoints do not keep the weights, or those of old runs have them")
	}
}

// Evaluation needs no weights of classes, so that held-out samples may lack a class, and its configuration has the settings of the checkpoint.
func TestEvaluationWithoutClassWeights(t *testing.T) {
	r := decoded(t, "data.root="+folders(t, "train/cat", "train/dog", "val/cat"), "model.class_weighting=balanced")
	c, err := EvalConfig(t.Context(), r, rank(1), Trained{Path: "x", Classes: []string{"cat", "dog"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Settings["model.class_weighting"] != `"balanced"` || c.RecipeText != portable(r) {
		t.Errorf("the configuration has lost the weights: %v", c.Settings["model.class_weighting"])
	}
}
