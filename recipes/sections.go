package recipes

import (
	"maps"
	"reflect"
	"slices"
	"sync"
)

// section is one table of the schema.
type section struct {
	name   string
	doc    string
	family bool // registered by the family of this name
	fields []*field
}

// known is the schema: the sections in Recipe and, behind [model], those that families have registered. It is made when it is first used, when all families
// that the program imports have registered.
var known = sync.OnceValue(func() (k struct {
	sections []*section
	byKey    map[string]*field
}) {
	k.byKey = map[string]*field{}
	add := func(s *section, t reflect.Type, at int) {
		k.sections = append(k.sections, s)
		for i := range t.NumField() {
			f := newField(s.name, t.Field(i))
			f.index, f.family = [2]int{at, i}, s.family
			s.fields = append(s.fields, f)
			k.byKey[f.key()] = f
		}
	}
	t := reflect.TypeFor[Recipe]()
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		name := sf.Tag.Get("toml")
		add(&section{name: name, doc: sf.Tag.Get("doc")}, sf.Type, i)
		if name != "model" {
			continue
		}
		for _, name := range Families() {
			if s := familyOf(name).Section; s != nil {
				add(&section{name: name, doc: s.Doc, family: true}, reflect.TypeOf(s.New()).Elem(), 0)
			}
		}
	}
	names, first := k.byKey["model.name"], k.byKey["model.name"].def
	names.oneOf = append([]string{first}, slices.DeleteFunc(Families(), func(s string) bool { return s == first })...)
	return k
})

func schema() []*section { return known().sections }

func byKey() map[string]*field { return known().byKey }

// defaults are the values of an empty recipe, as text, by key.
var defaults = sync.OnceValue(func() map[string]string {
	r, out := Default(), map[string]string{}
	for key, f := range byKey() {
		out[key] = literal(f.in(r))
	}
	return out
})

// clone is a copy whose keys can be changed alone.
func (r *Recipe) clone() *Recipe {
	c := *r
	c.origin.at = maps.Clone(r.origin.at)
	c.families = map[string]any{}
	for name, keys := range r.families {
		v := reflect.New(reflect.TypeOf(keys).Elem())
		v.Elem().Set(reflect.ValueOf(keys).Elem())
		c.families[name] = v.Interface()
	}
	return &c
}
