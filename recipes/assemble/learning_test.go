package assemble

import (
	"slices"
	"testing"
)

// TestLearning: what a recipe says about learning is in the list, and what it does not use is not.
func TestLearning(t *testing.T) {
	for _, c := range []struct {
		recipe string
		sets   []string
		want   []Setting
	}{
		{"resnet50", nil, []Setting{{"optimizer", "sgd momentum=0.9 dampening=0 nesterov=false decoupled=false, weight decay 0.0001 except for norms and biases"}}},
		{"quickstart", []string{"optim.weight_decay=0", "optim.nesterov=false", "train.clip_norm=0.5", "model.drop_path=0.1", "optim.ema_decay=0.99",
			"optim.layer_decay=0.75", "model.freeze=conv1.*  bn1.*",
			`optim.group=[{name="head", match="fc.*", lr_factor=10, weight_decay=0}, {name="rest", match="layer1.*"}]`}, []Setting{
			{"optimizer", "sgd momentum=0.9 dampening=0 nesterov=false decoupled=false, no weight decay"},
			{"layer decay", "each layer learns 0.75 times as fast as the one behind it"},
			{"clip norm", "0.5"},
			{"average", "of the weights, decay 0.99, less in the first steps; evaluation uses it"},
			{"drop path", "0.1 in the last block, linearly less in those before it"},
			{"frozen", "conv1.* bn1.*"},
			{"group head", "fc.*: learning rate x 10, weight decay 0"},
			{"group rest", "layer1.*: as the others"},
		}},
		{"deit-s", []string{"optim.no_decay_norm_bias=false", "optim.ema_decay=0.9", "optim.ema_warmup=false"}, []Setting{
			{"optimizer", "adamw betas=0.9,0.999 eps=1e-08, weight decay 0.05"},
			{"average", "of the weights, decay 0.9; evaluation uses it"},
			{"drop path", "0.1 in the last block, linearly less in those before it"},
		}},
		{"llama-tiny", []string{"model.drop_path=0.1", "train.clip_norm=0"}, []Setting{ // a network without residual branches that could be dropped
			{"optimizer", "adamw betas=0.9,0.95 eps=1e-08, weight decay 0.1 except for norms and biases"}}},
	} {
		if got := Learning(recipe(t, c.recipe, c.sets...)); !slices.Equal(got, c.want) {
			t.Errorf("%s %v:\n got %q\nwant %q", c.recipe, c.sets, got, c.want)
		}
	}
}
