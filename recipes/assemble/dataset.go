package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// dataset is what this package knows about one kind of data with samples of any order; kinds of text have a table of their own.
type dataset struct {
	open    func(o opening) (data.Source, error)
	classes bool // the training split names its classes
}

// datasets are the kinds by data.kind. To add one, add its row, and the function that opens it in a file of its own.
var datasets = map[string]dataset{
	"imagefolder": {openFolder, true},
	"csv":         {openList, true},
	"webdataset":  {openArchives, true},
	"idx":         {openIDX, true},
	"packed":      {openPacked, false},
	"synthetic":   {openSynthetic, false},
}

// opening is one split to open.
type opening struct {
	ctx      context.Context // ends the reading
	r        *recipes.Recipe
	root     string
	split    string
	classes  []string // of the training split or the model; nil: those of the data
	training bool
	log      *notices
	how      sharing
}

// open opens one split of the data set.
func (o opening) open(split string, classes []string, training bool) (data.Source, error) {
	set, ok := datasets[o.r.Data.Kind]
	if !ok {
		return nil, fmt.Errorf("recipes: data.kind = %q is not implemented", o.r.Data.Kind)
	}
	o.split, o.classes, o.training = split, classes, training
	return set.open(o)
}

// options are those of encoded pictures.
func (o opening) options() images.Options {
	d := &o.r.Data
	return images.Options{
		Transform: transform(d, o.training), Augment: pipeline(d, o.training), Norm: norm(d), Classes: o.classes, Decoder: images.Backend(d.Decoder),
		MaxPixels: int(d.MaxMegapixels * 1e6), Warn: o.log.damaged(o.training && d.Shuffle),
		Orient: d.EXIFOrientation, Turned: o.log.turned,
	}
}

// path is that of the split.
func (o opening) path() string {
	if filepath.IsAbs(o.split) {
		return o.split
	}
	return filepath.Join(o.root, o.split)
}

func openFolder(o opening) (data.Source, error) {
	return listed(o.how, o.options(), func(p images.Options) (*images.Folder, error) { return images.NewFolder(o.path(), p) })
}

func openList(o opening) (data.Source, error) {
	d := &o.r.Data
	l := images.ListOptions{Path: d.PathColumn, Label: d.LabelColumn, Split: d.SplitColumn}
	if d.TrainSplit == d.EvalSplit { // whether the run evaluates or not
		switch {
		case d.EvalFraction > 0:
			l.Holdout, l.Held = d.EvalFraction, !o.training
		case o.training:
			l.Rows = "train"
		default:
			l.Rows = "val"
		}
	}
	return listed(o.how, o.options(), func(p images.Options) (*images.List, error) {
		l.Options = p
		return images.NewList(o.path(), l)
	})
}

func openArchives(o opening) (data.Source, error) {
	root := o.root
	if filepath.IsAbs(o.split) {
		root = ""
	}
	return listed(o.how, o.options(), func(p images.Options) (*images.Shards, error) {
		return images.NewShards(o.ctx, o.split, images.ShardOptions{Options: p, Root: root, Label: o.r.Data.LabelColumn, Indexed: func(done, all int) {
			if o.log.rank == 0 && (done == all || done%max(1, all/10) == 0) {
				slog.Info("read a shard for its index, which later runs use", "shards", done, "of", all)
			}
		}})
	})
}

func openIDX(o opening) (data.Source, error) {
	d := &o.r.Data
	return images.OpenIDX(o.root, o.split, images.IDXOptions{Transform: transform(d, o.training), Augment: pipeline(d, o.training), Norm: norm(d),
		Channels: d.Channels, Classes: o.classes})
}

func openPacked(o opening) (data.Source, error) {
	d := &o.r.Data
	layout := images.Layout{}
	if d.PackedSize > 0 {
		layout = images.Layout{Channels: d.Channels, Height: d.PackedSize, Width: d.PackedSize}
	}
	return images.OpenPacked(o.path(), images.PackedOptions{Transform: transform(d, o.training), Augment: pipeline(d, o.training), Norm: norm(d), Layout: layout})
}

func openSynthetic(o opening) (data.Source, error) {
	n := o.r.Data.Samples
	if !o.training {
		n = o.r.Data.SyntheticEval
	}
	f, err := familyOf(o.r)
	if err != nil {
		return nil, err
	}
	return f.synthetic(o.r, n)
}
