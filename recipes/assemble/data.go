package assemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/gotrain/gotrain/recipes"
	_ "github.com/gotrain/gotrain/recipes/data" // the bundled data sets
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// Data opens the training samples and the held-out samples for a rank; the latter are nil if the recipe does not evaluate. All ranks of rank.Comm must call
// it. ctx ends the reading.
func Data(ctx context.Context, r *recipes.Recipe, rank Rank) (train, eval data.Source, err error) {
	d, log := &r.Data, &notices{rank: rank.Rank}
	root, err := locate(d, near(r))
	if err != nil {
		return nil, nil, err
	}
	how, err := share(ctx, r, rank, root)
	if err != nil {
		return nil, nil, err
	}
	if words[d.Kind] != nil {
		if train, err = openText(ctx, r, root, d.TrainSplit, true); err != nil || !r.Eval.Enabled {
			return train, nil, err
		}
		eval, err = openText(ctx, r, root, d.EvalSplit, false)
		return train, eval, err
	}
	o := opening{ctx: ctx, r: r, root: root, log: log, how: how}
	if train, err = o.open(d.TrainSplit, nil, true); err == nil {
		log.untrained(train)
		log.marked(train)
		train, err = mixed(r, train)
	}
	if err != nil || !r.Eval.Enabled {
		return train, nil, missing(err, root, "set data.train_split to the name of the training split")
	}
	eval, err = o.open(d.EvalSplit, train.Classes(), false)
	return train, eval, missing(err, root, "set data.eval_split to the name of the held-out split, or eval.enabled = false to train without one")
}

// missing adds to the error for a missing split what the data set holds instead.
func missing(err error, root, hint string) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var there []string
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if there = append(there, e.Name()); len(there) == 10 {
			there = append(there, "…")
			break
		}
	}
	if len(there) > 0 {
		hint += fmt.Sprintf("; %s contains %s", root, strings.Join(there, ", "))
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}

// locate finds the folder of the data set.
func locate(d *recipes.Data, near []string) (string, error) {
	if d.Kind == "synthetic" {
		return "", nil
	}
	root, err := data.Locate(d.Root, near...)
	if err != nil && d.Kind == "tokens" {
		err = fmt.Errorf("%w\nhint: create the shards with gotrain tokenize", err)
	}
	return root, err
}

// heldOut opens only the held-out samples, for a model trained on the given classes. If they are unknown, it uses those of the training samples, if
// available.
func heldOut(ctx context.Context, r *recipes.Recipe, classes []string, on Rank) (data.Source, error) {
	rank := on.Rank
	d, log := &r.Data, &notices{rank: rank}
	root, err := locate(d, near(r))
	if err != nil {
		return nil, err
	}
	how, err := share(ctx, r, on, root)
	if err != nil {
		return nil, err
	}
	if words[d.Kind] != nil {
		return openText(ctx, r, root, d.EvalSplit, false)
	}
	o := opening{ctx: ctx, r: r, root: root, log: log, how: how}
	if classes == nil && datasets[d.Kind].classes {
		whose := "of the training samples"
		train, err := o.open(d.TrainSplit, nil, true)
		switch {
		case err == nil:
			classes = train.Classes()
		case errors.Is(err, fs.ErrNotExist):
			whose = "of the held-out samples, because there are no training samples"
		default:
			return nil, err
		}
		if rank == 0 {
			slog.Warn("the checkpoint does not list its classes, so they cannot be compared with those of the data; using those " + whose)
		}
	}
	src, err := o.open(d.EvalSplit, classes, false)
	if f, ok := src.(interface{ Empty() []string }); ok && err == nil && rank == 0 {
		if none := f.Empty(); len(none) > 0 {
			slog.Warn("some classes of the model have no held-out samples", "classes", strings.Join(none, ", "))
		}
	}
	return src, err
}

func near(r *recipes.Recipe) []string {
	if r.Dir() == "" {
		return nil
	}
	return []string{r.Dir()}
}

// norm is the normalisation; for grey pictures it is the same in all planes.
func norm(d *recipes.Data) images.Norm {
	var n images.Norm
	for c := range n.Mean {
		n.Mean[c], n.Std[c] = d.Mean[min(c, len(d.Mean)-1)], d.Std[min(c, len(d.Std)-1)]
	}
	return n
}

// transform chooses the view of a picture that becomes a sample; nil uses the picture as stored.
func transform(d *recipes.Data, training bool) images.Transform {
	n := d.ImageSize
	augment := d.Augment
	if !training {
		augment = "none"
	}
	switch {
	case augment == "random_resized_crop":
		return images.RandomResizedCrop{Width: n, Height: n, Area: [2]float64(d.CropArea), Ratio: [2]float64(d.CropRatio), Flip: d.FlipProbability}
	case augment == "pad_crop":
		return images.PadCrop{Width: n, Height: n, Pad: d.PadPixels, Flip: d.FlipProbability}
	case n == 0:
		return nil
	}
	return images.ResizeCrop{Short: d.EvalResize, Width: n, Height: n}
}
