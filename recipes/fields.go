package recipes

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// field is one key of the schema.
type field struct {
	section string
	name    string
	doc     string
	def     string // as TOML; "auto" if derived, "" is the empty string
	auto    string // how it is derived
	unit    string
	oneOf   []string
	min     *float64
	max     *float64
	over    *float64
	typ     reflect.Type
	family  bool   // the section is one that a family registered
	index   [2]int // field in Recipe (not of a family's section), field in the section
}

// key is "section.name".
func (f *field) key() string { return f.section + "." + f.name }

// in returns the field's value within a recipe.
func (f *field) in(r *Recipe) reflect.Value {
	if f.family {
		return reflect.ValueOf(r.families[f.section]).Elem().Field(f.index[1])
	}
	return reflect.ValueOf(r).Elem().Field(f.index[0]).Field(f.index[1])
}

// typeName describes the type for users who write TOML.
func (f *field) typeName() string {
	switch f.typ.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Uint64:
		return "whole number, 0 or above"
	case reflect.Float64:
		if f.takesAuto() {
			return "number or \"auto\""
		}
		return "number"
	}
	if f.isGroups() {
		return "list of tables"
	}
	if f.typ.Elem().Kind() == reflect.Int {
		return "list of whole numbers"
	}
	return "list of numbers"
}

// article is typeName with its article, for use in a sentence.
func (f *field) article() string {
	if k := f.typ.Kind(); k == reflect.String || k == reflect.Bool {
		return f.typeName()
	}
	return "a " + f.typeName()
}

func newField(section string, sf reflect.StructField) *field {
	tag := sf.Tag
	f := &field{section: section, name: tag.Get("toml"), doc: tag.Get("doc"), def: tag.Get("default"), auto: tag.Get("auto"),
		unit: tag.Get("unit"), typ: sf.Type}
	if v := tag.Get("oneof"); v != "" {
		f.oneOf = strings.Split(v, "|")
	}
	number := func(name string) *float64 {
		v, ok := tag.Lookup(name)
		if !ok {
			return nil
		}
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			panic("recipes: tag " + name + " of " + f.key() + ": " + err.Error())
		}
		return &x
	}
	f.min, f.max, f.over = number("min"), number("max"), number("over")
	return f
}

// Default returns the recipe of an empty file before anything is derived: auto fields are zero.
func Default() *Recipe {
	r := &Recipe{families: map[string]any{}, origin: origin{at: map[string]place{}}}
	for _, s := range schema() {
		if s.family {
			r.families[s.name] = familyOf(s.name).Section.New()
		}
	}
	for _, s := range schema() {
		for _, f := range s.fields {
			// Without a derivation, "auto" is a default like any other word.
			if f.def == "auto" && f.auto != "" {
				continue
			}
			v := f.parse(f.def)
			if err := f.assign(r, v); err != nil {
				panic("recipes: default of " + f.key() + ": " + err.Error())
			}
		}
	}
	return r
}

// parse reads a value written in TOML or, more loosely, on a command line: text needs no quotes and lists need no brackets.
func (f *field) parse(text string) any {
	if f.typ.Kind() == reflect.String {
		if v, ok := tomlValue(text); ok {
			if s, isText := v.(string); isText {
				return s
			}
		}
		return text
	}
	if f.typ.Kind() == reflect.Slice && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		text = "[" + text + "]"
	}
	if v, ok := tomlValue(text); ok {
		return v
	}
	return text
}

func tomlValue(text string) (any, bool) {
	if strings.ContainsAny(text, "\n\r") {
		return nil, false
	}
	var m map[string]any
	if _, err := toml.Decode("v = "+text, &m); err != nil {
		return nil, false
	}
	return m["v"], true
}

// assign stores a decoded TOML value in the recipe. Its error describes only a wrong type.
func (f *field) assign(r *Recipe, v any) error {
	dst := f.in(r)
	wrong := func() error { return fmt.Errorf("needs %s, got %s", f.article(), describe(v)) }
	switch f.typ.Kind() {
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return wrong()
		}
		dst.SetString(s)
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return wrong()
		}
		dst.SetBool(b)
	case reflect.Int, reflect.Uint64:
		n, ok := v.(int64)
		if !ok || f.typ.Kind() == reflect.Uint64 && n < 0 {
			return wrong()
		}
		if f.typ.Kind() == reflect.Uint64 {
			dst.SetUint(uint64(n))
		} else {
			dst.SetInt(n)
		}
	case reflect.Float64:
		x, ok := number(v)
		switch {
		case v == autoWord && f.takesAuto():
			x = float64(Auto)
		case !ok:
			return wrong()
		case f.takesAuto() && x == float64(Auto):
			return fmt.Errorf("must be above 0 %s, got %g", f.unit, x)
		}
		dst.SetFloat(x)
	case reflect.Slice:
		if f.isGroups() {
			return assignGroups(dst, v)
		}
		return f.assignList(dst, v)
	}
	return nil
}

func (f *field) assignList(dst reflect.Value, v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("needs %s, got %s", f.article(), describe(v))
	}
	out := reflect.MakeSlice(f.typ, 0, len(list))
	for i, e := range list {
		switch f.typ.Elem().Kind() {
		case reflect.Int:
			n, ok := e.(int64)
			if !ok {
				return fmt.Errorf("needs %s, but element %d is %s", f.article(), i+1, describe(e))
			}
			out = reflect.Append(out, reflect.ValueOf(int(n)))
		default:
			x, ok := number(e)
			if !ok {
				return fmt.Errorf("needs %s, but element %d is %s", f.article(), i+1, describe(e))
			}
			out = reflect.Append(out, reflect.ValueOf(x))
		}
	}
	dst.Set(out)
	return nil
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	}
	return 0, false
}

// describe names a TOML value and its type.
func describe(v any) string {
	switch x := v.(type) {
	case string:
		return fmt.Sprintf("the text %q", x)
	case bool:
		return fmt.Sprintf("%t", x)
	case int64, float64:
		return fmt.Sprintf("%v", x)
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date"
}
