package assemble

import (
	"math"
	"strings"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// pipeline is what happens to training pictures after the crop; nothing for evaluation.
func pipeline(d *recipes.Data, training bool) augment.Pipeline {
	var p augment.Pipeline
	if !training {
		return p
	}
	switch d.Policy {
	case "randaugment":
		p.Policy = augment.RandAugment{Ops: d.RandOps, Magnitude: d.RandMagnitude, Std: d.RandStd, Prob: d.RandProbability, Vision: d.RandSpace == "torchvision"}
	case "trivialaugment":
		p.Policy = augment.TrivialAugment{}
	}
	if j := d.ColorJitter; len(j) == 4 {
		p.Jitter = augment.Jitter{Brightness: j[0], Contrast: j[1], Saturation: j[2], Hue: j[3]}
	}
	p.Erase = augment.Erase{Prob: d.EraseProb, Noise: d.EraseFill == "noise"}
	if p.Erase.Prob > 0 {
		p.Erase.Area = [2]float64(d.EraseArea)
	}
	for c, m := range norm(d).Mean {
		p.Fill[c] = byte(math.Round(max(0, min(1, m)) * 255))
	}
	return p
}

// mixing is how pairs of training samples are mixed.
func mixing(r *recipes.Recipe, classes int) augment.Mix {
	d := &r.Data
	return augment.Mix{Mixup: d.Mixup, Cutmix: d.Cutmix, Prob: d.MixProbability, Switch: d.CutmixShare, Classes: classes, Smoothing: r.Model.LabelSmoothing}
}

// mixed mixes the training samples, if the recipe asks for it.
func mixed(r *recipes.Recipe, src data.Source) (data.Source, error) {
	if !mixing(r, 1).Active() {
		return src, nil
	}
	n, err := Classes(r, src)
	if err != nil {
		return nil, err
	}
	return augment.NewMixed(src, mixing(r, n))
}

// classGroups divides the training samples into classes, if they are to be drawn equally often.
func classGroups(r *recipes.Recipe, src data.Source) (*data.Groups, error) {
	if !r.Data.Balanced {
		return nil, nil
	}
	if m, ok := src.(*augment.Mixed); ok {
		src = m.Unwrap()
	}
	l, ok := src.(data.Labelled)
	if !ok {
		return nil, nil // random samples, for a plan
	}
	return data.NewGroups(l)
}

// Augmentation describes in words what happens to training samples after the crop; "" is nothing.
func Augmentation(r *recipes.Recipe) string {
	var parts []string
	if p := pipeline(&r.Data, true); !p.Empty() {
		parts = append(parts, p.String())
	}
	if m := mixing(r, 1); m.Active() {
		parts = append(parts, m.String())
	}
	if n := r.Data.Repeats; n > 1 {
		parts = append(parts, "each sample "+times(n)+" an epoch")
	}
	if r.Data.Balanced {
		parts = append(parts, "classes equally often")
	}
	return strings.Join(parts, "; ")
}

func times(n int) string {
	words := []string{2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times", 7: "seven times", 8: "eight times"}
	return words[n]
}
