package llamafile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/foreign"
)

// Model gives access to the weights of a Llama in a file or folder of any format, with Hugging Face's names and order of rows. Its methods may be
// called from several goroutines; call Close only when none of them is reading.
type Model interface {
	Config() llama.Config
	// Names lists the parameters in the order in which the network uses them. lm_head.weight is omitted if it is tied to the embedding.
	Names() []string
	// Shape is [rows, columns] of a matrix, [length] of a norm.
	Shape(name string) ([]int, bool)
	// DType is the type in which the file stores a parameter; I8 means groups of int8 with a scale.
	DType(name string) safetensors.DType
	// Read converts a parameter directly from the mapped file into dst, whose length must match Shape.
	Read(name string, dst []float32) error
	// ReadRows reads consecutive rows starting at first: exactly as many as fill dst. The rows of a norm have one value.
	ReadRows(name string, first int, dst []float32) error
	// Format names the source format: "hf", "gotrain", "meta", "llama2c v0", "llama2c v1", "llama2c v2".
	Format() string
	Close() error
}

// ErrNoConfig is wrapped by the error of Open if there are weights but no description of the model.
var ErrNoConfig = errors.New("the model has no configuration")

// ErrNotLlama is wrapped by the error of Open if a file is sound but not a Llama in a known format.
var ErrNotLlama = errors.New("not a Llama in a known format")

// tensor is the place of a parameter's values.
type tensor struct {
	shape  []int
	dtype  safetensors.DType
	raw    []byte // in the file's order of rows
	scales []byte // float32, one for each group of int8
	group  int    // values per scale
	pairs  int    // width of a head whose rows are interleaved; 0: the rows are in order
}

// model is a Model of any format: formats differ in how they find the tensors.
type model struct {
	cfg     llama.Config
	format  string
	names   []string
	tensors map[string]tensor
	eos     []int // all ids that end a text, if the file has several
	close   func() error
}

func (m *model) Config() llama.Config { return m.cfg }
func (m *model) Names() []string      { return slices.Clone(m.names) }
func (m *model) Format() string       { return m.format }

// EOSIDs returns all ids that end a text; the configuration has room for the first only.
func (m *model) EOSIDs() []int { return slices.Clone(m.eos) }

func (m *model) Shape(name string) ([]int, bool) {
	t, ok := m.tensors[name]
	return slices.Clone(t.shape), ok
}

func (m *model) DType(name string) safetensors.DType { return m.tensors[name].dtype }

// Close releases the mappings. Close is idempotent.
func (m *model) Close() error {
	c := m.close
	m.close, m.tensors = nil, nil
	if c == nil {
		return nil
	}
	return c()
}

func (m *model) Read(name string, dst []float32) error {
	if t, ok := m.tensors[name]; ok && len(dst) != count(t.shape) {
		return fmt.Errorf("llamafile: %s has shape %v, but the destination has %d values", name, t.shape, len(dst))
	}
	return m.ReadRows(name, 0, dst)
}

func (m *model) ReadRows(name string, first int, dst []float32) error {
	t, ok := m.tensors[name]
	if !ok {
		return fmt.Errorf("llamafile: there is no parameter %q among the %d open ones", name, len(m.tensors))
	}
	cols := count(t.shape[1:])
	rows := len(dst) / cols
	if first < 0 || len(dst)%cols != 0 || first > t.shape[0]-rows {
		return fmt.Errorf("llamafile: %s has shape %v: %d values from row %d on are not whole rows in it", name, t.shape, len(dst), first)
	}
	if t.pairs == 0 {
		return t.decode(name, dst, first*cols)
	}
	for r := range rows {
		if err := t.decode(name, dst[r*cols:(r+1)*cols], interleavedRow(first+r, t.pairs)*cols); err != nil {
			return err
		}
	}
	return nil
}

// decode converts values from a position in the file's order on.
func (t tensor) decode(name string, dst []float32, at int) error {
	var err error
	if t.group > 0 {
		t.dequantise(dst, at)
	} else {
		size := int(t.dtype.Size())
		err = safetensors.DecodeFloat32s(dst, t.raw[at*size:(at+len(dst))*size], t.dtype)
	}
	if err != nil {
		return fmt.Errorf("llamafile: %s: %w", name, err)
	}
	return nil
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Open opens a model of any known format:
//   - a folder with config.json and model.safetensors or model.safetensors.index.json, as from Hugging Face;
//   - a folder of a gotrain checkpoint, with a config.json next to its model.safetensors;
//   - a .safetensors file or folder with Meta's names, next to params.json;
//   - a .bin file of llama2.c.
//
// Every size is checked before Open returns; values are read on demand.
func Open(path string) (Model, error) { return OpenWith(path, nil) }

// OpenWith is like Open for weights without a configuration: config describes the model; with nil it is Open. If the file contradicts config, that is
// an error.
func OpenWith(path string, config *llama.Config) (Model, error) {
	m, err := openAny(path, config)
	if err != nil || config == nil {
		return m, err
	}
	if said, given := plain(m.Config()), plain(*config); said != given {
		return nil, errors.Join(fmt.Errorf("llamafile: %s says %+v, but the given configuration is %+v\nhint: omit the wrong one", path, said, given), m.Close())
	}
	return m, nil
}

// plain omits a head width that follows from the other values.
func plain(c llama.Config) llama.Config {
	if c.Heads > 0 && c.HeadDim*c.Heads == c.Dim {
		c.HeadDim = 0
	}
	return c
}

func openAny(path string, config *llama.Config) (Model, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("llamafile: %w", err)
	}
	if st.IsDir() {
		if bin, ok := onlyBin(path); ok {
			return openBin(bin)
		}
		return openTensors(path, path, config)
	}
	switch {
	case strings.HasSuffix(path, ".safetensors"), strings.HasSuffix(path, ".index.json"):
		return openTensors(path, filepath.Dir(path), config)
	case strings.HasSuffix(path, ".pth"), strings.HasSuffix(path, ".pt"):
		return openTensors(path, filepath.Dir(path), config) // which explains pickles
	}
	return openBin(path)
}

// onlyBin finds the llama2.c file in a folder that has nothing else to open.
func onlyBin(dir string) (string, bool) {
	if found, _ := foreign.Glob(filepath.Join(dir, "*.safetensors*")); len(found) > 0 {
		return "", false
	}
	_, err := os.Stat(filepath.Join(dir, BinFile))
	return filepath.Join(dir, BinFile), err == nil
}

// exists reports whether a file exists; any error other than its absence counts as existing.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
