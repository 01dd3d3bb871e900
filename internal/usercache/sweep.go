package usercache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// abandoned is the age at which something unfinished counts as left behind. Nothing in these folders takes longer than minutes to write.
const abandoned = 24 * time.Hour

// Sweep removes files and folders below dir that processes began under a temporary name, with one of these prefixes, and left when they died. Whatever was
// written to within a day stays, and so do links. What cannot be removed is left for the next time: nothing depends on it.
func Sweep(dir string, prefixes ...string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.Name(), p) }) || !e.Type().IsRegular() && !e.IsDir() {
			continue
		}
		if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
