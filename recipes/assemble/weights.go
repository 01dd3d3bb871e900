package assemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/data"
)

// FindWeights looks whether the weights that the run starts from are there, before anything else is made ready. A run that goes on from a checkpoint of its
// own does not need them. The error has exit code 66 and says what the recipe says about getting them.
func FindWeights(r *recipes.Recipe) error {
	if r.Model.InitFrom == "" || goesOn(r) {
		return nil
	}
	_, err := weightsPath(r)
	return noWeights(r, err)
}

// noWeights is the error about weights that are not there.
func noWeights(r *recipes.Recipe, err error) error {
	if err == nil {
		return nil
	}
	hint := "give another path with model.init_from"
	if errors.Is(err, fs.ErrNotExist) && r.Model.InitHelp != "" {
		hint = r.Model.InitHelp
	}
	return launch.WithCode(launch.ExitNoInput, fmt.Errorf("recipes: model.init_from: no weights to start from: %w\nhint: %s", err, hint))
}

// weightsPath finds the weights to start from: where model.init_from says, or among bundled data.
func weightsPath(r *recipes.Recipe) (string, error) {
	at := r.Model.InitFrom
	_, err := os.Stat(at)
	if err == nil {
		return newest(at), nil
	}
	if bundled, e := data.Locate(at, near(r)...); e == nil && !filepath.IsAbs(at) {
		return bundled, nil
	}
	if !filepath.IsAbs(at) && r.Dir() != "" {
		err = fmt.Errorf("%w, nor is it beside the recipe in %s", err, r.Dir())
	}
	return "", err
}

// newest is the newest whole checkpoint where path is the folder of a run or one of several checkpoints, else the path itself.
func newest(path string) string {
	for _, dir := range []string{filepath.Join(path, "checkpoints"), path} {
		list, err := checkpoint.New(checkpoint.OS{}, dir, 0).List(context.Background())
		if err != nil {
			continue
		}
		for _, c := range list {
			if c.Err == nil {
				return filepath.Join(dir, c.Name)
			}
		}
	}
	return path
}

// own is the newest checkpoint of the run that goes on, "" where there is none that says what its model is.
func own(r *recipes.Recipe) string {
	if !goesOn(r) {
		return ""
	}
	dir := r.Checkpoint.Resume
	if dir == "auto" {
		dir = r.Checkpoint.Dir
	}
	at := newest(dir)
	if _, err := os.Stat(filepath.Join(at, llamafile.ConfigFile)); err != nil {
		return ""
	}
	return at
}

// goesOn says whether there may be a checkpoint to go on from.
func goesOn(r *recipes.Recipe) bool {
	switch r.Checkpoint.Resume {
	case "none":
		return false
	case "auto":
		entries, err := os.ReadDir(r.Checkpoint.Dir)
		return r.Checkpoint.Enabled && err == nil && len(entries) > 0
	}
	return true // from a checkpoint that must exist
}
