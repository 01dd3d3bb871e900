package cann

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// EnvHome names the environment variable with the folder of the toolkit to use.
const EnvHome = "GOTRAIN_CANN_HOME"

// root is a place where a toolkit may be.
type root struct {
	dir string // "" for the dynamic linker's search
	why string // how it was found, for messages
}

// DefaultRoots lists where the installers of 8.x and 9.x put a toolkit.
func DefaultRoots() []string { return slices.Clone(defaultRoots) }

// defaultRoots are where the installers of 8.x and 9.x put a toolkit.
var defaultRoots = []string{"/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/cann"}

// roots lists the places to search, in order.
func roots(env func(string) string) []root {
	if dir := env(EnvHome); dir != "" {
		return []root{{dir, EnvHome}}
	}
	l := []root{{"", "LD_LIBRARY_PATH"}}
	for _, v := range []string{"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"} {
		if dir := env(v); dir != "" && !slices.ContainsFunc(l, func(r root) bool { return r.dir == dir }) {
			l = append(l, root{dir, v})
		}
	}
	for _, dir := range defaultRoots {
		l = append(l, root{dir, "default"})
	}
	return l
}

// arch is the prefix of the folder that 8.x has for each architecture.
func arch() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// libDirs are the folders of a root that may hold libraries.
func libDirs(dir string) []string {
	return []string{filepath.Join(dir, "lib64"), filepath.Join(dir, arch()+"-linux", "lib64"), dir}
}

// OpLibraries lists the libraries with operators in a folder, those with priority first: the split ones of 9.x, or the one of 8.x, or the older split.
// The documents of 9.x forbid to mix them.
func OpLibraries(fsys fs.FS, dir string) []string {
	split, _ := fs.Glob(fsys, path.Join(dir, "libopapi_*.so"))
	if len(split) > 0 {
		slices.SortStableFunc(split, func(a, b string) int { return legacy(a) - legacy(b) })
		return split
	}
	if one := path.Join(dir, "libopapi.so"); has(fsys, one) {
		return []string{one}
	}
	old, _ := fs.Glob(fsys, path.Join(dir, "libaclnn_*.so"))
	return old
}

func has(fsys fs.FS, file string) bool {
	_, err := fs.Stat(fsys, file)
	return err == nil
}

// opLibraries is OpLibraries of this machine's file system.
func opLibraries(dir string) []string {
	l := OpLibraries(os.DirFS(dir), ".")
	for i, f := range l {
		l[i] = filepath.Join(dir, f)
	}
	return l
}

// legacy is 1 for the library whose operators have the lowest priority.
func legacy(name string) int {
	if strings.HasSuffix(name, "_legacy.so") {
		return 1
	}
	return 0
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Installed reports whether a toolkit seems to be installed, by looking at files and variables only: whether it is worth loading.
func Installed() bool {
	for _, r := range roots(os.Getenv) {
		if r.dir == "" {
			for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
				if exists(filepath.Join(dir, "libascendcl.so")) || exists(filepath.Join(dir, "libacl_rt.so")) {
					return true
				}
			}
			continue
		}
		for _, dir := range libDirs(r.dir) {
			if exists(filepath.Join(dir, "libascendcl.so")) || exists(filepath.Join(dir, "libacl_rt.so")) {
				return true
			}
		}
	}
	return false
}
