package assemble

import (
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// A run that does not evaluate saves the preparation of one that does.
func TestPrepareWithoutEvaluation(t *testing.T) {
	for _, sets := range [][]string{
		{"data.image_size=64", "data.eval_resize_pixels=64"},
		{"data.image_size=64", "data.eval_resize_pixels=100", "data.mixup=0.2", "train.batch_per_rank=4"},
		{"data.image_size=64", "data.augment=pad_crop"},
	} {
		with, err := Config(t.Context(), recipe(t, "resnet50", sets...), rank(1))
		if err != nil {
			t.Fatal(err)
		}
		without, err := Config(t.Context(), recipe(t, "resnet50", append(sets, "eval.enabled=false", "eval.every_epochs=0")...), rank(1))
		if err != nil {
			t.Fatal(err)
		}
		want := string(with.Eval.(data.Preparing).Preparation())
		if got := string(without.Network.Prepare); got != want || with.Network.Prepare != nil {
			t.Errorf("%v: %s, want %s", sets, got, want)
		}
	}
}
