package llamafile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"

	"github.com/gotrain/gotrain/train/foreign"
)

// Names of the files next to the tensors.
const (
	ConfigFile     = "config.json"            // Hugging Face's
	GenerationFile = "generation_config.json" // Hugging Face's
	ParamsFile     = "params.json"            // Meta's
	BinFile        = "model.bin"              // llama2.c's, if Export is given a folder

	manifestFile = "MANIFEST.json" // marks gotrain checkpoints
)

// openTensors opens safetensors with either naming; dir is the folder of the configuration.
func openTensors(path, dir string, config *llama.Config) (Model, error) {
	set, err := safetensors.OpenSet(path)
	if err != nil {
		if errors.Is(err, safetensors.ErrPickle) {
			return nil, fmt.Errorf("llamafile: %w: %w", ErrNotLlama, err)
		}
		return nil, fmt.Errorf("llamafile: %w", err)
	}
	m, err := fromSet(set, dir, config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("llamafile: %s: %w", path, err), set.Close())
	}
	m.close = set.Close
	return m, nil
}

func fromSet(set *safetensors.Set, dir string, config *llama.Config) (*model, error) {
	if _, _, ok := set.Lookup("tok_embeddings.weight"); ok {
		return fromMeta(set, dir, config)
	}
	if _, _, ok := set.Lookup(embedName); !ok {
		hint := safetensors.WrapperHint(set.Names())
		if hint != "" {
			hint = "\nhint: " + hint
		}
		return nil, fmt.Errorf("%w: neither %s nor tok_embeddings.weight is among its %d tensors%s", ErrNotLlama, embedName, len(set.Names()), hint)
	}
	m := &model{format: "hf"}
	if ok, err := exists(filepath.Join(dir, manifestFile)); err != nil {
		return nil, err
	} else if ok {
		m.format = "gotrain"
	}
	raw, err := foreign.ReadFile(filepath.Join(dir, ConfigFile), maxConfig)
	switch {
	case err == nil:
		if m.cfg, m.eos, err = parseConfig(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", ConfigFile, err)
		}
	case !os.IsNotExist(err):
		return nil, err
	case config == nil:
		return nil, fmt.Errorf("%w: there is no %s\nhint: put one next to the weights, or describe them with --config", ErrNoConfig, ConfigFile)
	default:
		m.cfg = *config
	}
	return m, m.find(set, func(p param) string { return p.name }, false)
}

// find looks up every parameter of m.cfg in a set, by the names of the format, and checks that the set holds nothing else.
func (m *model) find(set *safetensors.Set, named func(param) string, interleaved bool) error {
	if err := limits(m.cfg); err != nil {
		return err
	}
	if have := len(set.Names()); 2*have < len(layer)*m.cfg.Layers { // otherwise each missing one is reported
		return fmt.Errorf("%d tensors are too few for %d layers: the file is incomplete", have, m.cfg.Layers)
	}
	m.tensors = map[string]tensor{}
	known := map[string]bool{}
	var errs []error
	for _, p := range params(m.cfg) {
		at := named(p)
		known[at] = true
		t, err := lookup(set, at, p.shape)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if interleaved && p.heads > 0 {
			t.pairs = m.cfg.Head()
		}
		m.names, m.tensors[p.name] = append(m.names, p.name), t
	}
	if len(errs) == 0 && m.cfg.Tied {
		if err := m.checkTied(set, named, known); err != nil {
			return err
		}
	}
	for _, name := range set.Names() {
		if !known[name] && !ignored(name) {
			errs = append(errs, fmt.Errorf("tensor %s does not belong to this Llama", name))
		}
	}
	if len(errs) > 4 {
		errs = append(errs[:3:3], fmt.Errorf("and %d more", len(errs)-3))
	}
	return errors.Join(errs...)
}

func lookup(set *safetensors.Set, name string, want []int) (tensor, error) {
	s, f, ok := set.Lookup(name)
	if !ok {
		return tensor{}, fmt.Errorf("tensor %s is missing", name)
	}
	if !slices.EqualFunc(s.Shape, want, func(a int64, b int) bool { return a == int64(b) }) {
		return tensor{}, fmt.Errorf("tensor %s has shape %v, but the configuration requires %v", name, s.Shape, want)
	}
	switch s.DType {
	case safetensors.F32, safetensors.BF16, safetensors.F16, safetensors.F64:
	default:
		return tensor{}, fmt.Errorf("tensor %s is %s: only F32, BF16, F16 and F64 are supported", name, s.DType)
	}
	raw, err := f.Bytes(name)
	return tensor{shape: want, dtype: s.DType, raw: raw}, err
}

// checkTied accepts a second copy of a tied embedding only if it is equal: otherwise one of the two would be dropped silently.
func (m *model) checkTied(set *safetensors.Set, named func(param) string, known map[string]bool) error {
	untied := m.cfg
	untied.Tied = false
	all := params(untied)
	head := all[len(all)-1]
	known[named(head)] = true
	if _, _, ok := set.Lookup(named(head)); !ok {
		return nil
	}
	t, err := lookup(set, named(head), head.shape)
	if err != nil {
		return err
	}
	if e := m.tensors[embedName]; e.dtype != t.dtype || !bytes.Equal(e.raw, t.raw) {
		return fmt.Errorf("the configuration ties the last layer, but %s differs from the embedding\n"+
			"hint: if the two are separate, set tie_word_embeddings to false in %s", named(head), ConfigFile)
	}
	return nil
}

// dims returns the shapes of a set, to derive settings from.
func dims(set *safetensors.Set) map[string][]int {
	out := map[string][]int{}
	for _, name := range set.Names() {
		t, _, _ := set.Lookup(name)
		s := make([]int, len(t.Shape))
		for i, d := range t.Shape {
			s[i] = int(d)
		}
		out[name] = s
	}
	return out
}
