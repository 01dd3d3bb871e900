package recipes

import (
	"embed"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

//go:generate go run github.com/gotrain/gotrain/cmd/gotrain docs recipes --out ../docs/recipes.md

//go:embed *.toml
var files embed.FS

// List returns the names of the recipes in the binary, in order.
func List() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("recipes: " + err.Error()) // the files are part of the binary
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return out
}

// Text returns the source text of a recipe in the binary, or "" if no recipe has that name.
func Text(name string) string {
	b, err := files.ReadFile(name + ".toml")
	if err != nil {
		return ""
	}
	return string(b)
}

// Open decodes a recipe in the binary.
func Open(name string, sets ...string) (*Recipe, error) {
	n, ok := find(name)
	if !ok {
		return nil, fmt.Errorf("recipes: no recipe %q in the binary\nhint: use one of %s", name, strings.Join(List(), ", "))
	}
	return decode(Text(n), origin{file: n + ".toml", name: n}, sets)
}

// Summary returns the first comment line of a recipe in the binary.
func Summary(name string) string {
	for line := range strings.Lines(Text(name)) {
		if s, ok := strings.CutPrefix(line, "#"); ok {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

// find maps "resnet50", "resnet50.toml" and "recipes/resnet50.toml" to the name of a recipe in the binary.
func find(p string) (string, bool) {
	p = filepath.ToSlash(p)
	dir, base := path.Split(p)
	if dir != "" && path.Base(path.Clean(dir)) != "recipes" {
		return "", false
	}
	name := strings.TrimSuffix(base, ".toml")
	for _, n := range List() {
		if n == name {
			return n, true
		}
	}
	return "", false
}
