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

// FindWeights checks that the initial weights exist, before anything else is prepared. A run that resumes from its own checkpoint does not need them.
// The error has exit code 66 and, as its hint, the recipe's model.init_help.
func FindWeights(r *recipes.Recipe) error {
	if r.Model.InitFrom == "" || resumes(r) {
		return nil
	}
	_, err := weightsPath(r)
	return noWeights(r, err)
}

// noWeights returns the error for missing initial weights.
func noWeights(r *recipes.Recipe, err error) error {
	if err == nil {
		return nil
	}
	hint := "set model.init_from to another path"
	if errors.Is(err, fs.ErrNotExist) && r.Model.InitHelp != "" {
		hint = r.Model.InitHelp
	}
	return launch.WithCode(launch.ExitNoInput, fmt.Errorf("recipes: model.init_from: no weights to start from: %w\nhint: %s", err, hint))
}

// weightsPath finds the initial weights: at model.init_from, or among the bundled data.
func weightsPath(r *recipes.Recipe) (string, error) {
	at, _ := checkpoint.Resolve(r.Model.InitFrom)
	_, err := os.Stat(at)
	if err == nil {
		return newest(at), nil
	}
	if bundled, e := data.Locate(at, near(r)...); e == nil && !filepath.IsAbs(at) {
		return bundled, nil
	}
	if !filepath.IsAbs(at) && r.Dir() != "" {
		err = fmt.Errorf("%w, nor is it next to the recipe in %s", err, r.Dir())
	}
	return "", err
}

// newest returns the newest complete checkpoint if path is the folder of a run or of several checkpoints, otherwise the path itself.
func newest(path string) string {
	at, single := checkpoint.Resolve(path)
	if single {
		return at
	}
	list, _ := checkpoint.New(checkpoint.OS{}, at, 0).List(context.Background())
	for _, c := range list {
		if c.Err == nil {
			return filepath.Join(at, c.Name)
		}
	}
	return path
}

// own returns the newest checkpoint of a run that resumes, or "" if it has none with a model configuration.
func own(r *recipes.Recipe) string {
	if !resumes(r) {
		return ""
	}
	dir := r.Checkpoint.Resume
	switch dir {
	case "auto":
		dir = r.Checkpoint.Dir
	case "best":
		dir = filepath.Join(r.Checkpoint.Dir, "best")
	}
	at := newest(dir)
	if _, err := os.Stat(filepath.Join(at, llamafile.ConfigFile)); err != nil {
		return ""
	}
	return at
}

// resumes reports whether there may be a checkpoint to resume from.
func resumes(r *recipes.Recipe) bool {
	switch r.Checkpoint.Resume {
	case "none":
		return false
	case "auto":
		entries, err := os.ReadDir(r.Checkpoint.Dir)
		return r.Checkpoint.Enabled && err == nil && len(entries) > 0
	}
	return true // from a checkpoint that must exist
}
