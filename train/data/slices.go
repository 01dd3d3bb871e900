package data

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/gotrain/gotrain/npu"
)

// Column is one field of samples that are in memory already. Make one with Floats, Ints or Labels.
type Column struct {
	field  Field
	floats []float32
	ints   []int32
	err    error
}

// Floats is a field f32[shape]: the values of all samples, one after another. The slice is not copied.
func Floats(name string, values []float32, shape ...int) Column {
	return Column{field: Field{Name: name, Shape: shape, DType: npu.F32}, floats: values}
}

// Ints is a field i32[shape], such as tokens.
func Ints(name string, values []int32, shape ...int) Column {
	return Column{field: Field{Name: name, Shape: shape, DType: npu.I32}, ints: values}
}

// Labels is what the model learns to predict: a field i32[shape], with one number a sample where shape is empty. Numbers are copied.
func Labels[T ~int | ~int32 | ~int64 | ~uint8](name string, values []T, shape ...int) Column {
	c := Column{field: Field{Name: name, Shape: shape, DType: npu.I32, Target: true}, ints: make([]int32, len(values))}
	for i, v := range values {
		if int64(v) > math.MaxInt32 || int64(v) < math.MinInt32 {
			c.err = fmt.Errorf("data: element %d of %s is %d, which is no 32-bit number", i, name, int64(v))
			break
		}
		c.ints[i] = int32(v)
	}
	return c
}

// Slices is a Source of samples in memory.
type Slices struct {
	name    string
	columns []Column
	fields  []Field
	classes []string
	n       int
}

// FromSlices makes a source of columns with equally many samples:
//
//	src, err := data.FromSlices("digits", data.Floats("image", pixels, 1, 8, 8), data.Labels("label", digits))
//
// The slices must not change while the source is used. It is an error where a column does not hold whole samples, or another number of them.
func FromSlices(name string, columns ...Column) (*Slices, error) {
	s := &Slices{name: name, columns: columns, n: -1}
	if len(columns) == 0 {
		return nil, errors.New("data: slices have no columns")
	}
	for _, c := range columns {
		if c.err != nil {
			return nil, c.err
		}
		per, have := c.field.Elems(), len(c.floats)+len(c.ints)
		if per < 1 || have%per != 0 {
			return nil, fmt.Errorf("data: %d values of %s are not a whole number of samples of %d", have, c.field, per)
		}
		if n := have / per; s.n < 0 {
			s.n = n
		} else if n != s.n {
			return nil, fmt.Errorf("data: %s has %d samples, but %s has %d", c.field, n, columns[0].field, s.n)
		}
		s.fields = append(s.fields, c.field)
	}
	return s, checkFields(s)
}

// WithClasses names the classes of the labels, and returns the source. Labels must be below their number.
func (s *Slices) WithClasses(names ...string) (*Slices, error) {
	for _, c := range s.columns {
		if !c.field.Target {
			continue
		}
		for i, v := range c.ints {
			if v != Ignore && (v < 0 || int(v) >= len(names)) {
				return nil, fmt.Errorf("data: element %d of %s is %d, but there are %d classes", i, c.field.Name, v, len(names))
			}
		}
	}
	s.classes = slices.Clone(names)
	return s, nil
}

// Name is "slices NAME".
func (s *Slices) Name() string { return "slices " + s.name }

// Len is the number of samples.
func (s *Slices) Len() int { return s.n }

// Classes are those of WithClasses.
func (s *Slices) Classes() []string { return s.classes }

// Fields are those of the columns.
func (s *Slices) Fields() []Field { return s.fields }

// Load copies sample i.
func (s *Slices) Load(_ context.Context, _ *Rand, i int, dst [][]byte) error {
	for k, c := range s.columns {
		n := c.field.Elems()
		if c.field.DType == npu.F32 {
			copy(F32(dst[k]), c.floats[i*n:][:n])
		} else {
			copy(I32(dst[k]), c.ints[i*n:][:n])
		}
	}
	return nil
}

// Label is the label of sample i: of the first target with one number a sample, or -1.
func (s *Slices) Label(i int) int {
	for _, c := range s.columns {
		if c.field.Target && c.field.Elems() == 1 && c.field.DType == npu.I32 {
			return int(c.ints[i])
		}
	}
	return -1
}

// Fingerprint hashes all values.
func (s *Slices) Fingerprint() (string, error) {
	h := fnv.New64a()
	fmt.Fprintln(h, s.fields, s.classes)
	var b [4]byte
	for _, c := range s.columns {
		for _, v := range c.floats {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			h.Write(b[:])
		}
		for _, v := range c.ints {
			binary.LittleEndian.PutUint32(b[:], uint32(v))
			h.Write(b[:])
		}
	}
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
