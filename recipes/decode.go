package recipes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gotrain/gotrain/train/foreign"
)

// origin remembers where the values of a recipe were written.
type origin struct {
	file string           // as given by the user
	dir  string           // base folder of relative paths; "" for a recipe in the binary
	name string           // of the recipe
	at   map[string]place // by key, for the keys that were set
}

// maxText is more bytes than any recipe has.
const maxText = 4 << 20

// place is where a key was set.
type place struct {
	file string
	line int
}

// Load reads a recipe file, applies overrides of the form section.key=value, fills in defaults and checks everything. If there is no such file, the name is
// looked up among the recipes in the binary, so both "quickstart" and "recipes/quickstart.toml" work anywhere. All problems are returned together as Errors.
func Load(path string, sets ...string) (*Recipe, error) {
	text, err := foreign.ReadFile(path, maxText)
	if err != nil {
		name, shipped := find(path)
		if !errors.Is(err, os.ErrNotExist) && !(shipped && isDir(path)) {
			return nil, Errors{{File: path, Msg: "cannot be read: " + reason(err)}}
		}
		if !shipped {
			hint := "recipes in the binary: " + strings.Join(List(), ", ")
			if s := nearest(strings.TrimSuffix(filepath.Base(path), ".toml"), List()); s != "" {
				hint = fmt.Sprintf("did you mean %q? %s", s, hint)
			}
			return nil, Errors{{File: path, Msg: "no such recipe", Hint: hint}}
		}
		return decode(Text(name), origin{file: name + ".toml", name: name}, sets)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return decode(string(text), origin{file: path, dir: dir, name: strings.TrimSuffix(filepath.Base(path), ".toml")}, sets)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// reason is an error without the path, which the message already contains.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Decode is Load for text. file is used only in messages; relative paths are relative to the working directory.
func Decode(text, file string, sets ...string) (*Recipe, error) {
	return decode(text, origin{file: file, name: strings.TrimSuffix(filepath.Base(file), ".toml")}, sets)
}

func decode(text string, from origin, sets []string) (*Recipe, error) {
	r := Default()
	from.at = r.origin.at
	r.origin = from
	problems := r.read(text)
	problems = append(problems, r.override(sets)...)
	if syntax(problems) {
		return nil, problems
	}
	// Values that could not be read now have their default, so checking continues and finds the rest; further problems with a key that already has
	// one would only confuse.
	known := map[string]bool{}
	for _, p := range problems {
		known[p.Key], known[p.meant] = true, true
	}
	r.resolve()
	for _, p := range r.check() {
		if !known[p.Key] {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		sort.SliceStable(problems, func(i, j int) bool {
			a, b := problems[i], problems[j]
			if a.File != b.File {
				return a.File == from.file
			}
			// Problems without a line come last.
			return uint(a.Line-1) < uint(b.Line-1)
		})
		return nil, problems
	}
	r.warnings = r.suspicions()
	return r, nil
}

// syntax reports whether the text is not valid TOML, in which case nothing else can be checked.
func syntax(p Errors) bool { return len(p) > 0 && p[0].Key == "" && p[0].Line > 0 }

// probe takes whatever value a key has. It refuses it, because that makes the decoder tell its place.
type probe struct{ value any }

var errProbe = errors.New("probe")

func (p *probe) UnmarshalTOML(v any) error { p.value = v; return errProbe }

// look gives the value of a key and its line.
func look(md *toml.MetaData, prim toml.Primitive) (any, int) {
	var p probe
	var at toml.ParseError
	if err := md.PrimitiveDecode(prim, &p); errors.As(err, &at) {
		return p.value, at.Position.Line
	}
	return p.value, 0
}

// read parses the text into the recipe.
func (r *Recipe) read(text string) Errors {
	var problems Errors
	add := func(line int, p Problem) {
		p.File, p.Line = r.origin.file, line
		problems = append(problems, p)
	}
	var doc map[string]toml.Primitive
	md, err := toml.Decode(text, &doc)
	if err != nil {
		line, msg := 1, err.Error()
		var at toml.ParseError
		if errors.As(err, &at) {
			line, msg = max(1, at.Position.Line), at.Message
		}
		add(line, Problem{Msg: "not TOML: " + msg})
		return problems
	}
	for _, name := range sortedKeys(doc) {
		value, line := look(&md, doc[name])
		if sectionOf(name) == nil {
			add(line, unknownSection(name, value))
			continue
		}
		if _, ok := value.(map[string]any); !ok {
			add(line, Problem{Key: name, Msg: "is a section, got " + describe(value), Hint: "write [" + name + "] on its own line, with the keys below it"})
			continue
		}
		var keys map[string]toml.Primitive
		if err := md.PrimitiveDecode(doc[name], &keys); err != nil {
			add(line, Problem{Key: name, Msg: err.Error()})
			continue
		}
		for _, k := range sortedKeys(keys) {
			value, line := look(&md, keys[k])
			key := name + "." + k
			f := byKey()[key]
			if f == nil {
				f = r.moved(name, key)
			}
			if f == nil {
				add(line, unknownKey(name, k))
				continue
			}
			key = f.key()
			if value == "auto" && f.auto != "" { // as if it were not there
				continue
			}
			r.origin.at[key] = place{r.origin.file, line}
			if err := f.assign(r, value); err != nil {
				add(line, Problem{Key: key, Msg: err.Error(), Hint: f.example()})
			}
		}
	}
	return problems
}

// override applies settings of the form section.key=value.
func (r *Recipe) override(sets []string) Errors {
	var problems Errors
	for _, s := range sets {
		key, text, ok := strings.Cut(s, "=")
		key = strings.TrimSpace(key)
		add := func(p Problem) {
			p.File = "--set"
			problems = append(problems, p)
		}
		if !ok {
			add(Problem{Msg: fmt.Sprintf("%q is not of the form section.key=value", s), Hint: "for example --set optim.lr=0.05"})
			continue
		}
		f := byKey()[key]
		if f == nil {
			name, k, dotted := strings.Cut(key, ".")
			if !dotted || sectionOf(name) == nil {
				p := unknownSection(name, text)
				p.Key = key
				add(p)
			} else {
				add(unknownKey(name, k))
			}
			continue
		}
		if strings.Trim(strings.TrimSpace(text), `"`) == "auto" && f.auto != "" { // also in place of what the file says
			f.in(r).SetZero()
			delete(r.origin.at, key)
			continue
		}
		r.origin.at[key] = place{"--set", 0}
		if err := f.assign(r, f.parse(text)); err != nil {
			add(Problem{Key: key, Msg: err.Error(), Hint: f.example()})
		}
	}
	return problems
}

// example shows how to write a value of the field.
func (f *field) example() string {
	switch {
	case f.isGroups():
		return `for example group = [{name = "head", match = "fc.*", lr_factor = 10}]`
	case len(f.oneOf) > 0 && f.typeName() == "text":
		return fmt.Sprintf("for example %s = %q", f.name, f.oneOf[0])
	case f.def == "auto" || f.def == "" || f.def == "0" || f.def == "[]":
		return ""
	case f.typeName() == "text":
		return fmt.Sprintf("for example %s = %q", f.name, f.def)
	}
	return fmt.Sprintf("for example %s = %s", f.name, f.def)
}

// has reports whether a key was set by the file or an override.
func (r *Recipe) has(key string) bool { _, ok := r.origin.at[key]; return ok }

func sectionOf(name string) *section {
	for _, s := range schema() {
		if s.name == name {
			return s
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
