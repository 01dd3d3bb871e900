package train

import (
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Weights gives access to tensors by name, in any file format. Values are float32, row-major, under the model's names and in its order of rows.
type Weights interface {
	// Names lists all tensors in the file, including those that the model does not use.
	Names() []string
	Shape(name string) (shape []int, ok bool)
	Read(name string, dst []float32) error
	Close() error
}

// OpenWeights opens a safetensors file, a folder of them, or a checkpoint.
func OpenWeights(path string) (Weights, error) {
	path, _ = checkpoint.Resolve(path)
	if filepath.Base(path) != checkpoint.ModelFile && !strings.HasSuffix(path, ".safetensors") {
		if p := filepath.Join(path, checkpoint.ModelFile); exists(p) {
			path = p
		}
	}
	set, err := safetensors.OpenSet(path)
	if err != nil {
		return nil, err
	}
	return tensorSet{set}, nil
}

type tensorSet struct{ *safetensors.Set }

func (s tensorSet) Shape(name string) ([]int, bool) {
	t, _, ok := s.Lookup(name)
	return intsOf(t.Shape), ok
}

func (s tensorSet) Read(name string, dst []float32) error {
	v, err := s.Float32s(name)
	copy(dst, v)
	return err
}

func intsOf(s []int64) []int {
	out := make([]int, len(s))
	for i, v := range s {
		out[i] = int(v)
	}
	return out
}
