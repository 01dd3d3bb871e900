package recipes

import (
	"math"
	"slices"
)

// pictures checks what a network of pictures needs: the keys of augmentation that belong together.
func (c *checker) pictures() {
	d := &c.r.Data
	if j := d.ColorJitter; len(j) != 4 {
		c.bad("data.color_jitter", "for example [0.4, 0.4, 0.4, 0.1]", "needs four numbers, for brightness, contrast, saturation and hue, got %v", j)
	} else {
		for i, x := range j {
			limit := 10.0
			if i == 3 {
				limit = 0.5
			}
			if !(x >= 0 && x <= limit) {
				c.bad("data.color_jitter", "", "number %d must be from 0 to %g, got %g", i+1, limit, x)
			}
		}
	}
	c.interval("data.erasing_area", d.EraseArea, 1)
	if d.mixes() && c.r.Train.Batch%2 != 0 {
		c.bad("train.batch_per_rank", "", "must be even with data.mixup or data.cutmix, which mix samples in pairs, got %d", c.r.Train.Batch)
	}
	if math.IsNaN(d.EvalFraction) || d.EvalFraction > 0 && d.Kind == "csv" && d.TrainSplit != d.EvalSplit {
		c.bad("data.eval_fraction", "set data.eval_split to the same file, or remove this key", "needs one file for both splits, but they are %q and %q",
			d.TrainSplit, d.EvalSplit)
	}
	if d.Balanced && !slices.Contains(encoded, d.Kind) && d.Kind != "idx" {
		c.bad("data.balanced", "use one of "+choice(append(slices.Clone(encoded), "idx")),
			"needs data whose labels are known before they are read, not data.kind = %q", d.Kind)
	}
	c.classWeights()
	if d.Balanced && d.Repeats > 1 {
		c.bad("data.repeats", "", "must be 1 with data.balanced, which repeats the samples of small classes")
	}
}

// augmentKeys change what is learned only where they are used. Checkpoints of runs that do not use them do not store them.
var augmentKeys = append([]string{"data.policy", "data.color_jitter", "data.erasing_probability", "data.erasing_fill", "data.erasing_area", "data.mixup",
	"data.cutmix", "data.mix_probability", "data.cutmix_share", "data.repeats", "data.balanced", "data.path_column", "data.label_column", "data.split_column",
	"data.eval_fraction"}, randAugmentKeys...)
