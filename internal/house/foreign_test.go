package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Untrusted files are opened by train/foreign, which refuses pipes and devices and limits how much it reads. Folders are opened only to sync
// them, in functions with these names; os.ReadDir lists them.
func TestForeignFilesAreOpenedInOnePlace(t *testing.T) {
	folders := []string{"syncDir", "SyncDir"}
	sources(t, parser.SkipObjectResolution, func(name string, f *ast.File, set *token.FileSet) {
		in := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if strings.HasSuffix(name, "_test.go") || !in("train/data/") && !in("train/checkpoint/") && !in("recipes/") && !in("cmd/gotrain/") {
			return
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && slices.Contains(folders, fn.Name.Name) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && (s.Sel.Name == "Open" || s.Sel.Name == "ReadFile") {
					t.Errorf("%s: os.%s\nhint: use train/foreign: Open, or ReadFile with a limit", set.Position(n.Pos()), s.Sel.Name)
				}
				return true
			})
		}
	})
}
