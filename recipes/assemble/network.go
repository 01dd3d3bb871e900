package assemble

import (
	"encoding/json"
	"fmt"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// networkOf names the network for the description in checkpoints; the trainer adds what it reads.
func networkOf(r *recipes.Recipe, src, eval data.Source) (*checkpoint.Network, error) {
	f, err := familyOf(r)
	if err != nil {
		return nil, err
	}
	n := &checkpoint.Network{Family: r.Model.Name}
	if f.config != nil {
		classes, err := Classes(r, src)
		if err != nil {
			return nil, err
		}
		if n.Config, err = f.config(r, classes); err != nil {
			return nil, err
		}
	}
	if eval == nil {
		n.Prepare, err = prepare(r, src)
	}
	return n, err
}

// prepare describes how an evaluation would prepare the pictures of a run that has none, of which the training samples know only their own transform; nil: they
// know all of it.
func prepare(r *recipes.Recipe, src data.Source) (json.RawMessage, error) {
	s, ok := src.(data.Preparing)
	t, resizes := transform(&r.Data, false).(images.ResizeCrop)
	if !ok || !resizes {
		return nil, nil
	}
	raw := s.Preparation()
	if raw == nil {
		return nil, nil
	}
	p, err := images.ParsePreparation(raw)
	if err != nil {
		return nil, err
	}
	p.Short = t.Short
	return json.Marshal(p)
}

// Network describes the network of a recipe and how its pictures are prepared, for a checkpoint that holds the recipe but no description: those before
// gotrain had any. classes is the number of outputs of the network. The error says what the recipe alone does not tell.
func Network(r *recipes.Recipe, classes int) (*checkpoint.Network, error) {
	f, err := familyOf(r)
	if err != nil {
		return nil, err
	}
	n := &checkpoint.Network{Family: r.Model.Name, Compute: r.Train.DType}
	if f.config == nil {
		return n, nil
	}
	if n.Config, err = f.config(r, classes); err != nil {
		return nil, err
	}
	d := &r.Data
	size := d.ImageSize
	if size == 0 {
		return nil, fmt.Errorf("recipes: data.image_size is not set, so the size of the pictures is that of the data, which the recipe does not hold\n" +
			"hint: save the checkpoint again with this version: gotrain run on the same folder with more steps")
	}
	channels := 3
	if d.Kind == "idx" || d.Kind == "synthetic" {
		channels = max(1, d.Channels)
	}
	n.Inputs = []checkpoint.Input{{Name: "image", DType: "f32", Shape: []int{channels, size, size}}, {Name: "label", DType: "i32", Target: true}}
	if d.Kind == "synthetic" {
		return n, nil
	}
	norm := norm(d)
	n.Prepare, err = json.Marshal(images.Preparation{Channels: channels, Height: size, Width: size, Short: d.EvalResize,
		Mean: norm.Mean[:channels], Std: norm.Std[:channels], Orient: d.EXIFOrientation})
	return n, err
}
