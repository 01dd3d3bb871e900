package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// files walks over the text files of the repository.
func files(t *testing.T, do func(name string, text []byte)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, p)
		if d.IsDir() {
			if d.Name() == ".git" || slices.Contains([]string{"bin", "runs", ".cache"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(p) {
		case ".go", ".md", ".toml", ".txt", ".c", ".h", ".cc", ".sh", ".py", ".json", ".mod", ".yml", ".yaml", ".sbatch", ".service", ".ascend", "":
		default:
			return nil
		}
		text, err := os.ReadFile(p)
		if err == nil && len(text) < 1<<20 {
			n++
			do(filepath.ToSlash(name), text)
		}
		return err
	})
	if err != nil || n < 50 {
		t.Fatalf("%d files, %v", n, err)
	}
}

// sources parses the Go files.
func sources(t *testing.T, mode parser.Mode, do func(name string, f *ast.File, set *token.FileSet)) {
	t.Helper()
	files(t, func(name string, text []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, mode)
		if err != nil {
			t.Error(err)
			return
		}
		do(name, f, set)
	})
}

// cgo is allowed in leaf packages only.
func TestCgoInItsPlace(t *testing.T) {
	sources(t, parser.ImportsOnly, func(name string, f *ast.File, _ *token.FileSet) {
		for _, i := range f.Imports {
			if i.Path.Value != `"C"` {
				continue
			}
			leaf := slices.ContainsFunc([]string{"npu/", "ddp/comm/", "ddp/meet/pmix/", "train/data/"}, func(p string) bool { return strings.HasPrefix(name, p) })
			if !leaf {
				t.Errorf("%s: cgo is allowed below npu, ddp/comm and train/data, and in ddp/meet/pmix, only", name)
			}
		}
	})
}

// No file mentions the machine it was written on, or work that is left for later.
func TestForbiddenStrings(t *testing.T) {
	later := "TO" + "DO|FIX" + "ME"
	bad := regexp.MustCompile(`/wo` + `rk/|\.lib` + `rary/|\b(` + later + `)\b|not impl` + `emented yet`)
	files(t, func(name string, text []byte) {
		for i, line := range strings.Split(string(text), "\n") {
			if m := bad.FindString(line); m != "" {
				t.Errorf("%s:%d: %q", name, i+1, m)
			}
		}
	})
}

// helpers are packages that need no example: commands, test suites, internals of another package.
var helpers = regexp.MustCompile(`^(cmd|bench|deploy|examples|internal)/|^graph/graphtest$|^ddp/comm/commtest$` +
	`|^train/checkpoint/faultfs$|^npu/cpu/(dnnl|kern)$|^npu/acl/(cann/gen|acltest)$|^train/data/images/turbojpeg$|^ddp/comm/reduce$`)

// Every package has a manual in doc.go, and an example that the tests run.
func TestManualAndExample(t *testing.T) {
	for _, p := range list(t) {
		text, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil && !strings.HasPrefix(p.name(), "examples/") && !strings.HasPrefix(p.name(), "bench/") {
			t.Errorf("%s has no doc.go", p.name())
		} else if err == nil && !regexp.MustCompile(`(?s)^(//[^\n]*\n\n)*// (Package|Command) `).Match(text) {
			t.Errorf("%s/doc.go does not begin with \"Package\" or \"Command\"", p.name())
		}
		if helpers.MatchString(p.name()) {
			continue
		}
		example := false
		for _, f := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			example = example || err == nil && regexp.MustCompile(`(?m)^func Example`).Match(text) && strings.Contains(string(text), "// Output:")
		}
		if !example {
			t.Errorf("%s has no Example with Output", p.name())
		}
	}
}

// Files and functions are small. The limits are wider than the goal (300 and 60 lines), because a table or a loop that reads straight down is
// sometimes better in one piece.
func TestSizes(t *testing.T) {
	const fileLimit, funcLimit = 600, 90
	sources(t, 0, func(name string, f *ast.File, set *token.FileSet) {
		test := strings.HasSuffix(name, "_test.go")
		if n := set.File(f.Pos()).LineCount(); n > fileLimit && !test {
			t.Errorf("%s has %d lines, more than %d", name, n, fileLimit)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || test {
				continue
			}
			if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line; n > funcLimit {
				t.Errorf("%s: %s has %d lines, more than %d", name, fn.Name.Name, n, funcLimit)
			}
		}
	})
}

// Exported names are documented.
func TestExportedIsDocumented(t *testing.T) {
	sources(t, parser.ParseComments, func(name string, f *ast.File, set *token.FileSet) {
		if strings.HasSuffix(name, "_test.go") || f.Name.Name == "main" {
			return
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !obvious[d.Name.Name] && !oneLine(set, d) {
					t.Errorf("%s: %s has no comment", set.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: %s has no comment", set.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	})
}

// oneLine reports whether a method fits one line, as methods of small types that only satisfy an interface do.
func oneLine(set *token.FileSet, d *ast.FuncDecl) bool {
	return d.Recv != nil && set.Position(d.Pos()).Line == set.Position(d.End()).Line
}

// obvious are methods whose name is the whole contract: those of the standard library's interfaces.
var obvious = map[string]bool{"Error": true, "String": true, "Unwrap": true, "Read": true, "Write": true, "Close": true, "Is": true}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	x := d.Recv.List[0].Type
	if s, ok := x.(*ast.StarExpr); ok {
		x = s.X
	}
	if i, ok := x.(*ast.IndexExpr); ok {
		x = i.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}
