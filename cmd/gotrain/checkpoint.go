package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/foreign"
)

// load opens the checkpoint that a path stands for, and says on standard error which newer ones are damaged.
func load(ctx context.Context, path string) (*checkpoint.Checkpoint, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, absent(path, fmt.Errorf("no checkpoint: %w", err)))
	}
	c, report, err := checkpoint.OpenAt(ctx, checkpoint.OS{}, path)
	if err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, absent(path, err))
	}
	if report.FellBack() {
		fmt.Fprintln(os.Stderr, foreign.Printable(report.String()))
	}
	return c, nil
}

// absent adds what to do where there is no checkpoint: the run has not written one yet, or it is in the folder of runs.
func absent(path string, err error) error {
	name := filepath.Base(path)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		return fmt.Errorf("%w\nhint: a run writes a checkpoint at its end, when it is stopped, and as often as checkpoint.every_epochs or every_steps say", err)
	case errors.Is(err, fs.ErrNotExist) && holdsCheckpoint(filepath.Join("runs", name)):
		return fmt.Errorf("%w\nhint: did you mean %s?", err, filepath.Join("runs", name))
	}
	return err
}

// openCheckpoint finds the checkpoint to evaluate and the recipe in it.
func openCheckpoint(ctx context.Context, path string) (from assemble.Trained, recipe string, err error) {
	c, err := load(ctx, findModel(path))
	if err != nil {
		return from, "", err
	}
	return assemble.Trained{Path: c.Path, Classes: c.State.Classes}, c.State.Recipe, c.Close()
}
