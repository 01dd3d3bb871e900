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

// load opens a checkpoint, or the newest good one in a folder of several.
func load(ctx context.Context, path string) (*checkpoint.Checkpoint, *checkpoint.Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, nil, launch.WithCode(launch.ExitNoInput, fmt.Errorf("no checkpoint: %w", err))
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.ManifestFile)); err == nil {
		c, err := checkpoint.New(checkpoint.OS{}, filepath.Dir(path), 0).Load(ctx, filepath.Base(path))
		return c, nil, launch.WithCode(launch.ExitNoInput, err)
	}
	s := checkpoint.New(checkpoint.OS{}, path, 0)
	c, report, err := s.Latest(ctx)
	if err != nil {
		return nil, nil, launch.WithCode(launch.ExitNoInput, err)
	}
	if report.FellBack() {
		fmt.Fprintln(os.Stderr, foreign.Printable(report.String()))
	}
	return c, s, nil
}

// openCheckpoint finds the checkpoint to evaluate and the recipe in it.
func openCheckpoint(ctx context.Context, path string) (from assemble.Trained, recipe string, err error) {
	c, _, err := load(ctx, findModel(path))
	if err != nil {
		return from, "", err
	}
	return assemble.Trained{Path: c.Path, Classes: c.State.Classes}, c.State.Recipe, c.Close()
}
