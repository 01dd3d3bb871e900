package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
)

// runFolder is the folder of a run's checkpoints in that of the run.
const runFolder = "checkpoints"

// Resolve finds out what a path stands for wherever a checkpoint is asked for: the files "best" and "latest" in a folder of checkpoints for the one that they
// name, the folder of a run for that of its checkpoints. Any other path is returned as it is. single says that the result is the folder of one checkpoint.
func Resolve(path string) (at string, single bool) {
	at = follow(path)
	if _, err := os.Stat(filepath.Join(at, ManifestFile)); err == nil {
		return at, true
	}
	if below := filepath.Join(at, runFolder); holds(below) {
		return below, false
	}
	return at, false
}

// OpenAt opens and verifies the checkpoint that a path stands for, as Resolve says; of a folder of several it opens the newest good one, and the report names
// newer ones that are not. Its Path is absolute. Without any, the error is ErrNone.
func OpenAt(ctx context.Context, disk FS, path string) (*Checkpoint, Report, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, Report{}, err
	}
	at, single := Resolve(path)
	if !single {
		return New(disk, at, 0).Latest(ctx)
	}
	c, err := New(disk, filepath.Dir(at), 0).Load(ctx, filepath.Base(at))
	return c, Report{}, err
}

// follow returns the folder that a pointer file names, any other path as it is.
func follow(path string) string {
	dir, file := filepath.Dir(path), filepath.Base(path)
	if file != bestFile && file != latestFile {
		return path
	}
	name, err := New(OS{}, dir, 0).pointed(file)
	if err != nil || name == "" {
		return path
	}
	return filepath.Join(dir, name)
}

// holds reports whether a folder has checkpoints, by their names.
func holds(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, _, ok := parseName(e.Name())
		return ok
	})
}
