package headers

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrNoCompiler says that there is no C++ compiler.
var ErrNoCompiler = errors.New("there is no C++ compiler (g++, clang++ or c++)\nhint: install one to compare tables with headers")

// Compiler finds a C++ compiler.
func Compiler() (string, error) {
	for _, name := range []string{"g++", "clang++", "c++"} {
		if file, err := exec.LookPath(name); err == nil {
			return file, nil
		}
	}
	return "", ErrNoCompiler
}

// Installed lists the folders of an installed toolkit that hold headers.
func Installed(root string) []string {
	if root == "" {
		return nil
	}
	var l []string
	for _, pattern := range []string{"include", "*-linux/include", "opp/built-in/op_impl/ai_core/tbe/op_api/include", "opp/include"} {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, d := range dirs {
			if st, err := os.Stat(d); err == nil && st.IsDir() {
				l = append(l, d)
			}
		}
	}
	return l
}

var (
	declared = regexp.MustCompile(`\b(acl[A-Za-z0-9_]+|Hccl[A-Za-z0-9_]+)\s*\(`)
	comment  = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

const (
	maxFiles = 20000
	maxBytes = 8 << 20
)

// index maps the functions that headers below the roots declare to the header, and to a second one that is preferred if it is there (acl/acl.h has the
// rest of the runtime's).
func index(roots []string) (map[string]string, error) {
	m := map[string]string{}
	files := 0
	for _, root := range roots {
		err := filepath.WalkDir(follow(root), func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(file) != ".h" {
				return nil // what cannot be read declares nothing
			}
			if files++; files > maxFiles {
				return fs.SkipAll
			}
			st, err := os.Stat(file)
			if err != nil || st.Size() > maxBytes {
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil
			}
			for _, g := range declared.FindAllStringSubmatch(comment.ReplaceAllString(string(text), " "), -1) {
				if m[g[1]] == "" {
					m[g[1]] = file
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// follow resolves links: include is one in a toolkit, and WalkDir does not enter them.
func follow(root string) string {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		return real
	}
	return root
}

// umbrella is the header to include first for a function, if a root has it.
func umbrella(roots []string, function string) string {
	name := "acl/acl.h"
	if strings.HasPrefix(function, "Hccl") {
		name = "hccl/hccl.h"
	}
	for _, r := range roots {
		if _, err := os.Stat(filepath.Join(r, name)); err == nil {
			return name
		}
	}
	return ""
}
