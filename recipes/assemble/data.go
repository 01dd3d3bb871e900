package assemble

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/recipes"
	_ "github.com/gotrain/gotrain/recipes/data" // the bundled data sets
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// Data opens the training samples and the held-out ones; the latter are nil where the recipe does not evaluate.
func Data(r *recipes.Recipe) (train, eval data.Source, err error) {
	d := &r.Data
	root, err := locate(d, near(r))
	if err != nil {
		return nil, nil, err
	}
	if words[d.Kind] != nil {
		if train, err = openText(r, root, d.TrainSplit, true); err != nil || !r.Eval.Enabled {
			return train, nil, err
		}
		eval, err = openText(r, root, d.EvalSplit, false)
		return train, eval, err
	}
	if train, err = open(r, root, d.TrainSplit, nil, true); err != nil || !r.Eval.Enabled {
		return train, nil, missing(err, root, "data.train_split names the training part")
	}
	eval, err = open(r, root, d.EvalSplit, train.Classes(), false)
	return train, eval, missing(err, root, "data.eval_split names the held-out part, and eval.enabled = false does without one")
}

// missing says what there is where a part of a data set is not there.
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
		hint += fmt.Sprintf("; %s holds %s", root, strings.Join(there, ", "))
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
		err = fmt.Errorf("%w\nhint: gotrain tokenize makes shards of text", err)
	}
	return root, err
}

// heldOut opens the held-out samples alone, for a model that was trained on classes. Where they are not known, those of the training samples are taken, if these are there.
func heldOut(r *recipes.Recipe, classes []string, say bool) (data.Source, error) {
	d := &r.Data
	root, err := locate(d, near(r))
	if err != nil {
		return nil, err
	}
	if words[d.Kind] != nil {
		return openText(r, root, d.EvalSplit, false)
	}
	if classes == nil && (d.Kind == "imagefolder" || d.Kind == "idx") {
		whose := "of the training samples"
		train, err := open(r, root, d.TrainSplit, nil, false)
		switch {
		case err == nil:
			classes = train.Classes()
		case errors.Is(err, fs.ErrNotExist):
			whose = "of the held-out samples, since there are no training samples"
		default:
			return nil, err
		}
		if say {
			slog.Warn("the checkpoint does not say its classes, so nobody can tell whether they are those of the data; taken are those " + whose)
		}
	}
	src, err := open(r, root, d.EvalSplit, classes, false)
	if f, ok := src.(*images.Folder); ok && err == nil && say {
		if none := f.Empty(); len(none) > 0 {
			slog.Warn("there are no held-out samples of some classes of the model", "classes", strings.Join(none, ", "))
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

// open opens one part of the data set.
func open(r *recipes.Recipe, root, split string, classes []string, training bool) (data.Source, error) {
	d := &r.Data
	norm := norm(d)
	switch d.Kind {
	case "imagefolder":
		return images.NewFolder(filepath.Join(root, split), images.FolderOptions{
			Transform: transform(d, training), Norm: norm, Classes: classes, Decoder: images.Backend(d.Decoder),
			MaxPixels: int(d.MaxMegapixels * 1e6), Warn: once(),
			Orient: d.EXIFOrientation, Turned: turned,
		})
	case "idx":
		pictures, labels, err := images.FindIDX(root, split)
		if err != nil {
			return nil, err
		}
		return images.NewIDX(pictures, labels, images.IDXOptions{Transform: transform(d, training), Norm: norm, Channels: d.Channels, Classes: classes})
	case "packed":
		layout := images.Layout{}
		if d.PackedSize > 0 {
			layout = images.Layout{Channels: d.Channels, Height: d.PackedSize, Width: d.PackedSize}
		}
		return images.OpenPacked(filepath.Join(root, split), images.PackedOptions{Transform: transform(d, training), Norm: norm, Layout: layout})
	case "synthetic":
		n := d.Samples
		if !training {
			n = d.SyntheticEval
		}
		f, err := familyOf(r)
		if err != nil {
			return nil, err
		}
		return f.synthetic(r, n)
	}
	return nil, fmt.Errorf("recipes: data.kind = %q is not implemented", d.Kind)
}

// turned tells of pictures that are not used as a person sees them.
func turned(path string) {
	slog.Warn("pictures are used as they are stored, as torchvision's ImageFolder does, and the EXIF orientation of some turns them; data.exif_orientation = true applies it", "first", path)
}

// once passes on what is wrong with a file the first time that it is read.
func once() func(path, message string) {
	var seen sync.Map
	return func(path, message string) {
		if _, again := seen.LoadOrStore(path, true); !again {
			slog.Warn("damaged picture is used as far as it can be read", "file", path, "reason", message)
		}
	}
}

// norm is the normalisation, for grey pictures the same in all planes.
func norm(d *recipes.Data) images.Norm {
	var n images.Norm
	for c := range n.Mean {
		n.Mean[c], n.Std[c] = d.Mean[min(c, len(d.Mean)-1)], d.Std[min(c, len(d.Std)-1)]
	}
	return n
}

// transform is the view of a picture that becomes a sample; nil takes it as it is stored.
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
