package npu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Attrs are the constants of an Op. Values are int, float64, bool, string, []int or []float64, nothing else, so that
// an Op can be printed, compared and hashed.
type Attrs map[string]any

// Int returns an int attribute, or def if it is absent.
func (a Attrs) Int(key string, def int) int {
	if v, ok := a[key].(int); ok {
		return v
	}
	return def
}

// Float returns a float64 attribute, or def if it is absent.
func (a Attrs) Float(key string, def float64) float64 {
	if v, ok := a[key].(float64); ok {
		return v
	}
	return def
}

// Bool returns a bool attribute, or false if it is absent.
func (a Attrs) Bool(key string) bool { v, _ := a[key].(bool); return v }

// Str returns a string attribute, or "" if it is absent.
func (a Attrs) Str(key string) string { v, _ := a[key].(string); return v }

// Ints returns a []int attribute, or nil if it is absent. The slice must not be changed.
func (a Attrs) Ints(key string) []int { v, _ := a[key].([]int); return v }

// Floats returns a []float64 attribute, or nil if it is absent. The slice must not be changed.
func (a Attrs) Floats(key string) []float64 { v, _ := a[key].([]float64); return v }

// Clone is a shallow copy, never nil, to add keys to.
func (a Attrs) Clone() Attrs {
	c := make(Attrs, len(a)+1)
	maps.Copy(c, a)
	return c
}

// String prints the attributes sorted by key; equal attributes print equally.
func (a Attrs) String() string {
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(a)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%v", k, a[k])
	}
	return b.String()
}

// Op is one operation on tensors of known shape, dtype and layout: the unit that a device compiles. kinds.go lists the
// kinds with their attributes, inputs and outputs; a device may support more.
type Op struct {
	Kind  string
	Attrs Attrs
	In    []Desc
	Out   []Desc
}

// Clone copies the op so that its descs can be changed.
func (o Op) Clone() Op {
	o.In, o.Out = slices.Clone(o.In), slices.Clone(o.Out)
	return o
}

// String prints kind{attrs}(in, …) -> out, …; equal ops print equally, so it serves as a cache key.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s{%s}(", o.Kind, o.Attrs)
	for i, d := range o.In {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.String())
	}
	b.WriteString(") ->")
	for i, d := range o.Out {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + d.String())
	}
	return b.String()
}
