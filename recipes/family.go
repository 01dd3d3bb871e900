package recipes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph/models"

	// The table of networks that recipes can use: each registers its name, its section and its checks.
	_ "github.com/gotrain/gotrain/graph/models/llama"
	_ "github.com/gotrain/gotrain/graph/models/resnet"
	_ "github.com/gotrain/gotrain/graph/models/vit"
)

// pictures are the kinds of data with labelled pictures; encoded are those whose pictures are JPEG or PNG files of any size.
var pictures, encoded = []string{"imagefolder", "csv", "webdataset", "idx", "packed"}, []string{"imagefolder", "csv", "webdataset"}

// reading is what a recipe needs to know about networks that read one kind of samples.
type reading struct {
	kinds []string         // values of data.kind, besides synthetic
	keys  func() []string  // keys that have no effect on other networks; nil: none
	check func(c *checker) // checks across several keys
}

// readings are in terms of models.Recipe.Reads.
func readings() map[string]reading {
	return map[string]reading{
		models.Images: {kinds: pictures, keys: func() []string { return lossKeys }, check: (*checker).pictures},
		models.Text:   {kinds: []string{"text", "tokens"}, keys: func() []string { return keysOf("text") }, check: (*checker).text},
	}
}

// oldSections are the sections of families that every recipe and every checkpoint held when there was no other; those of later families are written only
// where they are used.
var oldSections = []string{"llama"}

// Families lists the networks that a recipe can use: those that registered themselves in package graph/models.
func Families() (names []string) {
	for _, name := range models.Names() {
		if f, _ := models.Find(name); f.Recipe != nil {
			names = append(names, name)
		}
	}
	return names
}

// family is how the recipe's network is described, empty for an unknown name.
func (r *Recipe) family() models.Recipe { return familyOf(r.Model.Name) }

func familyOf(name string) models.Recipe {
	if f, _ := models.Find(name); f.Recipe != nil {
		return *f.Recipe
	}
	return models.Recipe{}
}

// Keys returns the section of a recipe that a family has registered, by the type of its keys. It is the recipe's own: changes count. It panics if no family
// of the program has registered the type.
//
//	l := recipes.Keys[llama.Keys](r)
func Keys[T any](r *Recipe) *T {
	for _, keys := range r.families {
		if k, ok := keys.(*T); ok {
			return k
		}
	}
	panic(fmt.Sprintf("recipes: no family of this program has keys of type %T; it has %s", *new(T), strings.Join(Families(), ", ")))
}

// Section returns the keys of the network's own section; nil: the family has none.
func (r *Recipe) Section() any { return r.families[r.Model.Name] }

// Value is the value of a key such as "data.kind"; nil: there is no such key.
func (r *Recipe) Value(key string) any {
	if f := byKey()[key]; f != nil {
		return f.in(r).Interface()
	}
	return nil
}

// writes reports whether the text and the settings of a recipe hold a section.
func (r *Recipe) writes(s *section) bool {
	if !s.family || s.name == r.Model.Name || slices.Contains(oldSections, s.name) {
		return true
	}
	for _, f := range s.fields {
		if literal(f.in(r)) != defaults()[f.key()] {
			return true
		}
	}
	return false
}

// family checks that the data and the training settings suit the network, then applies the network's own checks.
func (c *checker) family() {
	name, f := c.r.Model.Name, c.r.family()
	reads, ok := readings()[f.Reads]
	if !ok {
		return // the name is already reported
	}
	if k := c.r.Data.Kind; k != "synthetic" && !slices.Contains(reads.kinds, k) {
		c.bad("data.kind", "use "+choice(reads.kinds)+": "+name+" reads "+f.Reads, "model.name = %q cannot read data.kind = %q", name, k)
	}
	if !f.Layers && c.r.Train.Recompute != "none" {
		c.bad("train.recompute", "", "%q requires a model built from layers, which model.name = %q is not", c.r.Train.Recompute, name)
	}
	reads.check(c)
	if f.Section != nil && f.Section.Check != nil {
		for _, p := range f.Section.Check(c.r.Section(), c.r) {
			c.bad(p.Key, p.Hint, "%s", p.Msg)
		}
	}
}

// familyKeys lists, for each family, the keys that not all families use.
func familyKeys() map[string][]string {
	out := map[string][]string{}
	for _, name := range Families() {
		f := familyOf(name)
		keys := slices.Clone(f.Keys)
		if f.Section != nil {
			keys = append(keys, keysOf(name)...)
		}
		if reads := readings()[f.Reads]; reads.keys != nil {
			keys = append(keys, reads.keys()...)
		}
		out[name] = keys
	}
	return out
}

// choice writes a list as "a, b or c".
func choice(words []string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " or " + words[n]
}
