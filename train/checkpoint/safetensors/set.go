package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// IndexName is the customary name of the index of a sharded model.
const IndexName = "model.safetensors.index.json"

// Set is one model in one or more files.
type Set struct {
	files []*File
	home  map[string]*File
}

// maxIndex is larger than the index of a million tensors.
const maxIndex = 64 << 20

type index struct {
	WeightMap map[string]string `json:"weight_map"`
}

// OpenSet opens a .safetensors file, an index file, or a directory that has an index, a model.safetensors, or exactly one .safetensors file.
func OpenSet(path string) (*Set, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if st.IsDir() {
		if path, err = pick(path); err != nil {
			return nil, err
		}
	}
	if strings.HasSuffix(path, ".json") {
		return openIndex(path)
	}
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	s := &Set{files: []*File{f}, home: map[string]*File{}}
	for _, t := range f.h.tensors {
		s.home[t.Name] = f
	}
	return s, nil
}

// pick chooses what to open in a directory.
func pick(dir string) (string, error) {
	for _, name := range []string{IndexName, "model.safetensors"} {
		p := filepath.Join(dir, name)
		if _, err := os.Stat(p); err == nil {
			return p, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("safetensors: %w", err)
		}
	}
	found, _ := foreign.Glob(filepath.Join(dir, "*.safetensors"))
	if len(found) == 0 {
		if err := picklesIn(dir); err != nil {
			return "", err
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("safetensors: %s contains %d .safetensors files and no %s\nhint: specify the file", dir, len(found), IndexName)
	}
	return found[0], nil
}

// parseIndex reads an index. Its paths must stay inside its directory.
func parseIndex(raw []byte) (index, error) {
	var ix index
	if err := json.Unmarshal(raw, &ix); err != nil {
		return ix, err
	}
	if len(ix.WeightMap) == 0 {
		return ix, errors.New("no weight_map")
	}
	for _, name := range slices.Sorted(maps.Keys(ix.WeightMap)) {
		if shard := ix.WeightMap[name]; !filepath.IsLocal(shard) {
			return ix, fmt.Errorf("shard %q is outside the directory", shard)
		}
	}
	return ix, nil
}

func openIndex(path string) (*Set, error) {
	raw, err := foreign.ReadFile(path, maxIndex)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	ix, err := parseIndex(raw)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	s := &Set{home: map[string]*File{}}
	open := map[string]*File{}
	for _, name := range slices.Sorted(maps.Keys(ix.WeightMap)) {
		shard := ix.WeightMap[name]
		f, ok := open[shard]
		if !ok {
			if f, err = Open(filepath.Join(filepath.Dir(path), shard)); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			open[shard] = f
			s.files = append(s.files, f)
		}
		if _, ok := f.Lookup(name); !ok {
			return nil, errors.Join(fmt.Errorf("safetensors: %s: tensor %q is not in %s", path, name, shard), s.Close())
		}
		s.home[name] = f
	}
	return s, nil
}

// Names lists all tensors by name.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.home)) }

// Lookup finds a tensor and the file it is in.
func (s *Set) Lookup(name string) (Tensor, *File, bool) {
	f, ok := s.home[name]
	if !ok {
		return Tensor{}, nil, false
	}
	t, ok := f.Lookup(name)
	return t, f, ok
}

// Float32s reads a tensor as float32, wherever it is.
func (s *Set) Float32s(name string) ([]float32, error) {
	f, ok := s.home[name]
	if !ok {
		return nil, fmt.Errorf("safetensors: no tensor %q among %d in %d files", name, len(s.home), len(s.files))
	}
	return f.Float32s(name)
}

// Close closes all files.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
