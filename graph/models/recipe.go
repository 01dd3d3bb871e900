package models

import "encoding/json"

// What networks of a family read, and so which data a recipe may give them.
const (
	Images = "images" // pictures with labels: the fields image f32[N C H W] and label i32[N]
	Text   = "text"   // sequences of tokens: the fields tokens and targets i32[N S]
)

// Recipe says how recipes describe networks of a family.
type Recipe struct {
	// Reads is Images or Text.
	Reads string
	// Section is the family's own section, which has its name; nil: the keys are in section [model].
	Section *Section
	// Keys are keys of other sections that only some families use, this one among them: model.classes.
	Keys []string
	// Layers says that networks are built from layers that can be recomputed (graph.Builder.Block), BatchNorm that they normalise over the samples of a batch.
	Layers, BatchNorm bool
}

// Section is the section of a recipe that belongs to a family. Make one from Keys.
type Section struct {
	// Doc says what the section is for, in the recipe reference.
	Doc string
	// New returns a pointer to a new struct of keys.
	New func() any
	// Check reports faults across several keys, nil: there are none. What the tags say about single values is checked already.
	Check func(keys any, of Values) []Problem
	// Config is the configuration, for Open, of the network that the keys describe, with the number of classes of the data; nil: package recipes/assemble knows
	// how to build the network.
	Config func(keys any, of Values, classes int) (json.RawMessage, error)
}

// Values gives a section the values of a recipe's other keys.
type Values interface {
	// Value is the value of a key such as "data.kind"; nil: there is no such key.
	Value(key string) any
}

// Problem is a fault of a recipe. The key says its place.
type Problem struct{ Key, Msg, Hint string }

// Keys declares a section whose keys are the fields of T, with the tags that recipes.Recipe describes.
type Keys[T any] struct {
	Doc    string
	Check  func(keys *T, of Values) []Problem
	Config func(keys *T, of Values, classes int) (any, error) // of a type that is written as JSON
}

// Section makes the section.
func (k Keys[T]) Section() *Section {
	s := &Section{Doc: k.Doc, New: func() any { return new(T) }}
	if k.Check != nil {
		s.Check = func(keys any, of Values) []Problem { return k.Check(keys.(*T), of) }
	}
	if k.Config != nil {
		s.Config = func(keys any, of Values, classes int) (json.RawMessage, error) {
			c, err := k.Config(keys.(*T), of, classes)
			if err != nil {
				return nil, err
			}
			return json.Marshal(c)
		}
	}
	return s
}
