package foreign

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Glob lists what a path or a pattern of filepath.Glob names, in alphabetical order. A path that exists as it is written is no pattern, and neither is the
// part of one that is a folder: in "/data/a [old]/train-*.bin" only the star is special, if there is a folder "/data/a [old]".
func Glob(pattern string) ([]string, error) {
	if _, err := os.Lstat(pattern); err == nil {
		return []string{pattern}, nil
	}
	dir := filepath.Dir(pattern)
	for !isDir(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	if rest, err := filepath.Rel(dir, pattern); err == nil && rest != pattern {
		pattern = filepath.Join(literal.Replace(dir), rest)
	}
	found, err := filepath.Glob(pattern)
	slices.Sort(found)
	return found, err
}

// literal makes a path a pattern that matches only itself.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
