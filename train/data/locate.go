package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PathVar is the environment variable with further directories to search for data, separated as in PATH.
const PathVar = "GOTRAIN_DATA"

// Locate finds a data set, a file or directory, by a name such as "flowers", "flowers/train" or "/srv/imagenet". An absolute path, or one
// that begins with ./ or ../, is used as given. Any other name is searched for, in this order, below
//   - each directory of near (the folder of the recipe file, say) and its data/,
//   - the directories of $GOTRAIN_DATA,
//   - the working directory, its data/ and recipes/data/,
//   - recipes/data/ of the source tree that holds the working directory,
//   - the executable's directory, its recipes/data/ and ../share/gotrain/data/.
//
// If it is not found there, Locate searches the data sets embedded in the program (see Bundle); package unpack documents where they are unpacked.
// The error lists the places that were searched.
func Locate(name string, near ...string) (string, error) {
	if name == "" {
		return "", errors.New("data: the path of the data set is empty")
	}
	local := filepath.FromSlash(name)
	if filepath.IsAbs(local) || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		if _, err := os.Stat(local); err != nil {
			return "", fmt.Errorf("data: no data set at this path: %w", err)
		}
		return local, nil
	}
	var tried []string
	for _, dir := range searchDirs(near) {
		path := filepath.Join(dir, local)
		if slices.Contains(tried, path) {
			continue
		}
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("data: %w", err)
		}
		tried = append(tried, path)
	}
	if path, err := unpackBundled(name); err != nil || path != "" {
		return path, err
	}
	if sets := bundled(); len(sets) > 0 {
		tried = append(tried, "the data sets in the program: "+strings.Join(sets, ", "))
	}
	return "", fmt.Errorf("data: no data set %q; searched\n  %s\nhint: use an absolute path, or set %s to its parent directory",
		name, strings.Join(tried, "\n  "), PathVar)
}

func searchDirs(near []string) []string {
	inTree := filepath.Join("recipes", "data")
	var dirs []string
	for _, d := range near {
		dirs = append(dirs, d, filepath.Join(d, "data"))
	}
	dirs = append(dirs, filepath.SplitList(os.Getenv(PathVar))...)
	if cwd, err := os.Getwd(); err == nil {
		dirs = append(dirs, cwd, filepath.Join(cwd, "data"), filepath.Join(cwd, inTree))
		for d := filepath.Dir(cwd); d != filepath.Dir(d); d = filepath.Dir(d) {
			if st, err := os.Stat(filepath.Join(d, inTree)); err == nil && st.IsDir() {
				dirs = append(dirs, filepath.Join(d, inTree))
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		d := filepath.Dir(exe)
		dirs = append(dirs, d, filepath.Join(d, inTree), filepath.Join(d, "..", inTree), filepath.Join(d, "..", "share", "gotrain", "data"))
	}
	return dirs
}
