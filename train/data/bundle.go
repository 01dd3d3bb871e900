package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/data/unpack"
)

// bundles are the data sets embedded in the program; packages that embed some add them in init.
var bundles []fs.FS

// Bundle adds data sets to those that Locate finds: the top-level folders of files, which are embedded in the program. It is for init functions; a
// program that imports gotrain/recipes/data has the data sets bundled with gotrain.
func Bundle(files fs.FS) { bundles = append(bundles, files) }

// bundled returns the names of the data sets in the program.
func bundled() []string {
	var names []string
	for _, b := range bundles {
		entries, err := fs.ReadDir(b, ".")
		if err != nil {
			continue // the files are embedded in the program
		}
		for _, e := range entries {
			if e.IsDir() && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// unpackBundled unpacks the data set that a name begins with to disk, and returns the path of what is named, or "" if there is none.
func unpackBundled(name string) (string, error) {
	name = path.Clean(filepath.ToSlash(name))
	set, _, _ := strings.Cut(name, "/")
	if !slices.Contains(bundled(), set) {
		return "", nil
	}
	for _, b := range bundles {
		if _, err := fs.Stat(b, name); err != nil {
			continue
		}
		files, err := fs.Sub(b, set)
		if err != nil {
			return "", fmt.Errorf("data: %w", err)
		}
		dir, err := unpack.Dir(set, files)
		if err != nil {
			return "", fmt.Errorf("data: %s: %w", set, err)
		}
		at := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, set)))
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			return at, err
		}
	}
	return "", nil
}
