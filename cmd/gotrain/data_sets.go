package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
	"github.com/gotrain/gotrain/train/data/survey"
)

// dataSets opens the splits that a recipe or a path names. pixels is the largest picture that is read; 0: the default.
func (a *app) dataSets(ctx context.Context, place string, f *surveyFlags, c *cobra.Command) (sets []survey.Set, pixels int, err error) {
	st, err := os.Stat(place)
	isPath := err == nil && !strings.HasSuffix(place, ".toml") || strings.HasSuffix(place, ".tar") || strings.HasSuffix(place, ".csv")
	if place == "-" || !isPath {
		sets, pixels, failed := a.recipeSets(ctx, place, f, c)
		if failed != nil && strings.Contains(failed.Error(), "no such recipe") {
			failed = launch.WithCode(launch.ExitCode(failed), fmt.Errorf("%w\nhint: nor is there a file or folder of this name; bundled data are those of a recipe, "+
				"such as resnet50 --set data.root=flowers", failed))
		}
		return sets, pixels, failed
	}
	if len(f.all()) > 0 {
		return nil, 0, launch.WithCode(launch.ExitUsage, fmt.Errorf("--set and --ranks change a recipe, and %s is none", place))
	}
	switch {
	case err == nil && st.IsDir():
		sets, err = folderSets(ctx, place)
	default:
		sets, err = openSets(ctx, "", []string{place})
	}
	return sets, 0, launch.WithCode(launch.ExitNoInput, err)
}

// recipeSets opens the data of a recipe without what augments or normalises them.
func (a *app) recipeSets(ctx context.Context, place string, f *surveyFlags, c *cobra.Command) ([]survey.Set, int, error) {
	r, err := f.loadOr(place, c.InOrStdin())
	if err != nil {
		return nil, 0, err
	}
	a.warn(r.Warnings())
	d := &r.Data
	if d.Kind == "synthetic" {
		return nil, 0, launch.WithCode(launch.ExitUsage, fmt.Errorf("the data of %s are noise\nhint: --set data.kind=imagefolder --set data.root=FOLDER", r.Source()))
	}
	d.Augment, d.Policy, d.EraseProb, d.Mixup, d.Cutmix, d.ColorJitter = "none", "none", 0, 0, 0, nil
	for i := range d.Mean {
		d.Mean[i] = 0
	}
	for i := range d.Std {
		d.Std[i] = 1
	}
	train, eval, err := assemble.Data(ctx, r, assemble.Rank{Identity: launch.Identity{World: 1, LocalWorld: 1}})
	if err != nil {
		return nil, 0, launch.WithCode(launch.ExitNoInput, err)
	}
	sets := []survey.Set{{Name: splitName(r, d.TrainSplit, "train"), Source: train}}
	if eval != nil {
		sets = append(sets, survey.Set{Name: splitName(r, d.EvalSplit, "held out"), Source: eval})
	}
	return sets, int(d.MaxMegapixels * 1e6), nil
}

// splitName is the recipe's name of a split, or another one where both have the same.
func splitName(r *recipes.Recipe, name, other string) string {
	if r.Data.TrainSplit == r.Data.EvalSplit {
		return other
	}
	return name
}

// splits are the usual names, the training split first.
var splits = []string{"train", "val", "valid", "validation", "test"}

// folderSets finds out what a folder holds.
func folderSets(ctx context.Context, root string) ([]survey.Set, error) {
	for _, pattern := range []string{"%s", "%s.csv", "%s*.tar"} {
		var there []string
		seen := map[string]bool{}
		for _, s := range splits {
			at := fmt.Sprintf(pattern, s)
			found, err := fs.Glob(os.DirFS(root), at)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 || pattern == "%s" && !holdsFolders(filepath.Join(root, found[0])) || seen[found[0]] {
				continue // all files of validation*.tar are those of val*.tar
			}
			for _, f := range found {
				seen[f] = true
			}
			there = append(there, at)
		}
		if len(there) > 0 {
			return openSets(ctx, root, there)
		}
	}
	sets, err := openSets(ctx, "", []string{root})
	if others := listsIn(root); err != nil && len(others) > 0 {
		err = fmt.Errorf("%w\nhint: or name a file: gotrain data stats %s", err, filepath.Join(root, others[0]))
	}
	return sets, err
}

// listsIn are the CSV files and tar shards of a folder.
func listsIn(root string) (names []string) {
	for _, pattern := range []string{"*.csv", "*.tar"} {
		found, _ := fs.Glob(os.DirFS(root), pattern) // a folder that cannot be read has an error of its own
		names = append(names, found...)
	}
	return names
}

func holdsFolders(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.IsDir() {
			return true
		}
	}
	return false
}

// listSets are the splits that a CSV file has a column for.
func listSets(all *images.List, file string, o images.Options) (sets []survey.Set, _ error) {
	o.Classes = all.Classes()
	for _, split := range all.Splits() {
		src, err := images.NewList(file, images.ListOptions{Options: o, Rows: split})
		if err != nil {
			return nil, err
		}
		sets = append(sets, survey.Set{Name: split, Source: src})
	}
	return sets, nil
}

// openSets opens places below a folder; the classes of the first are those of all.
func openSets(ctx context.Context, root string, places []string) (sets []survey.Set, err error) {
	o := images.Options{Transform: images.ResizeCrop{Short: 8, Width: 8, Height: 8}} // nothing is resized: pictures are examined as stored
	for _, at := range places {
		var src data.Source
		switch {
		case strings.HasSuffix(at, ".tar"):
			src, err = images.NewShards(ctx, at, images.ShardOptions{Options: o, Root: root})
		case strings.HasSuffix(at, ".csv"):
			var list *images.List
			if list, err = images.NewList(filepath.Join(root, at), images.ListOptions{Options: o}); err == nil && len(places) == 1 && len(list.Splits()) > 1 {
				return listSets(list, filepath.Join(root, at), o)
			}
			src = list
		default:
			if st, failed := os.Stat(filepath.Join(root, at)); failed == nil && !st.IsDir() {
				return nil, fmt.Errorf("%s is neither a folder nor a file that ends with .csv or .tar\n"+
					"hint: shards are plain tar files: gunzip one that ends with .tar.gz or .tgz; a recipe ends with .toml", filepath.Join(root, at))
			}
			src, err = images.NewFolder(filepath.Join(root, at), o)
		}
		if err != nil {
			return nil, err
		}
		o.Classes = src.Classes()
		name := strings.TrimRight(strings.SplitN(filepath.Base(at), ".", 2)[0], "*-_")
		if len(places) == 1 {
			name = "all"
		}
		sets = append(sets, survey.Set{Name: name, Source: src})
	}
	return sets, nil
}
