package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/npu"
)

// Infer checks attributes and inputs and gives the outputs, all plain. Its error tells what is wrong, not where.
func (k *Kind) Infer(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	for i, d := range in {
		if d.Layout != npu.Plain {
			return nil, fmt.Errorf("input %d has layout %s, graphs are built in the plain one", i, d.Layout)
		}
	}
	return k.infer(a, in)
}

func (k *Kind) infer(a npu.Attrs, in []npu.Desc) ([]npu.Desc, error) {
	if err := k.known(a); err != nil {
		return nil, err
	}
	if err := k.count(a, len(in)); err != nil {
		return nil, err
	}
	for i, d := range in {
		for _, n := range d.Shape {
			if n < 1 {
				return nil, fmt.Errorf("input %d has the shape %v; every dimension must be at least 1", i, d.Shape)
			}
		}
	}
	return k.Shape(a, in)
}

// count checks the number of inputs.
func (k *Kind) count(a npu.Attrs, n int) error {
	args := k.Inputs(a)
	least, most := 0, len(args)
	var names []string
	for _, x := range args {
		if names = append(names, x.Name); !x.Maybe {
			least++
		}
		if x.Many {
			most = max(n, most)
			names[len(names)-1] += " …"
		}
	}
	if n < least || n > most {
		return fmt.Errorf("takes the inputs %s, got %d", strings.Join(names, ", "), n)
	}
	return nil
}

// known fails on an attribute that the kind does not have or that has another type: a typo must not become a default.
func (k *Kind) known(a npu.Attrs) error {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		t, ok := k.attrs[key]
		if !ok {
			return fmt.Errorf("has no attribute %q (knows %s)", key, strings.Join(slices.Sorted(maps.Keys(k.attrs)), ", "))
		}
		if !hasType(a[key], t) {
			return fmt.Errorf("attribute %s is %T %v, want %s", key, a[key], a[key], typeNames[t])
		}
	}
	return nil
}

var typeNames = map[byte]string{
	'i': "int", 'f': "float64", 'b': "bool", 's': "string",
	'n': "[]int", 'w': "[]float64", '2': "[]int of length 2", '4': "[]int of length 4",
}

func hasType(v any, t byte) bool {
	ok := false
	switch t {
	case 'i':
		_, ok = v.(int)
	case 'f':
		_, ok = v.(float64)
	case 'b':
		_, ok = v.(bool)
	case 's':
		_, ok = v.(string)
	case 'w':
		_, ok = v.([]float64)
	default:
		var s []int
		s, ok = v.([]int)
		ok = ok && (t == 'n' || len(s) == int(t-'0'))
	}
	return ok
}

// Check checks an op as a device gets it: a known kind, its attributes, and number, shapes and types of inputs and outputs. Layouts are ignored, and outputs
// at the end may be missing. The error begins with the op.
func Check(op npu.Op) error {
	k, ok := kinds[op.Kind]
	if !ok {
		return fmt.Errorf("unknown op kind %q\nhint: kinds that are not in this module are registered with package npu/kind", op.Kind)
	}
	if err := k.check(op); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

func (k *Kind) check(op npu.Op) error {
	for i, d := range slices.Concat(op.In, op.Out) {
		for _, n := range d.Shape {
			if n < 0 {
				return fmt.Errorf("argument %d has a negative dimension", i)
			}
		}
		if d.DType.Size() == 0 {
			return fmt.Errorf("argument %d has no dtype", i)
		}
	}
	a := op.Attrs
	if k.Complete != nil && len(op.Out) > 0 {
		a = a.Clone()
		maps.Copy(a, k.Complete(op))
	}
	in := slices.Clone(op.In)
	for i := range in {
		in[i].Layout = npu.Plain
	}
	want, err := k.infer(a, in)
	if err != nil {
		return err
	}
	if len(op.Out) < 1 || len(op.Out) > len(want) {
		return fmt.Errorf("has %d outputs, got %d", len(want), len(op.Out))
	}
	for i, d := range op.Out {
		if !d.Shape.Equal(want[i].Shape) || d.DType != want[i].DType {
			return fmt.Errorf("output %d is %s, must be %s", i, d.With(npu.Plain), want[i].With(npu.Plain))
		}
	}
	return nil
}
