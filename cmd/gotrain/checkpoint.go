package main

import (
	"context"
	"fmt"
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
		return nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("no checkpoint: %w", err))
	}
	c, report, err := checkpoint.OpenAt(ctx, checkpoint.OS{}, path)
	if err != nil {
		return nil, launch.WithCode(launch.ExitNoInput, err)
	}
	if report.FellBack() {
		fmt.Fprintln(os.Stderr, foreign.Printable(report.String()))
	}
	return c, nil
}

// openCheckpoint finds the checkpoint to evaluate and the recipe in it.
func openCheckpoint(ctx context.Context, path string) (from assemble.Trained, recipe string, err error) {
	c, err := load(ctx, findModel(path))
	if err != nil {
		return from, "", err
	}
	return assemble.Trained{Path: c.Path, Classes: c.State.Classes}, c.State.Recipe, c.Close()
}
