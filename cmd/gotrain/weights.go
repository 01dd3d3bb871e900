package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/recipes/assemble"
	"github.com/gotrain/gotrain/train/checkpoint"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data/text"
)

// isCheckpoint reports whether a path is a gotrain checkpoint or a folder of several, rather than weights in another format. A path that does not exist
// counts as one, so that the message is about the likeliest intent.
func isCheckpoint(path string) bool {
	st, err := os.Stat(path)
	if err != nil {
		return true
	}
	if !st.IsDir() {
		return false
	}
	if _, err := os.Stat(filepath.Join(path, checkpoint.ManifestFile)); err == nil {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return true
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == llamafile.ConfigFile,
			name == llamafile.ParamsFile,
			name == llamafile.BinFile,
			name == safetensors.IndexName,
			filepath.Ext(name) == ".safetensors":
			return false
		}
	}
	return true
}

// openLlama opens a Llama of any format. A checkpoint is verified first, and the newest good one of several is used. config is a file that describes the
// model, for weights without one; "" is none. dir is the folder of the weights: the files next to them belong to them.
func openLlama(ctx context.Context, path, config string) (m llamafile.Model, dir string, err error) {
	var given *llama.Config
	if config != "" {
		c, err := llamafile.ReadConfig(config)
		if err != nil {
			return nil, "", launch.WithCode(launch.ExitNoInput, err)
		}
		given = &c
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, "", launch.WithCode(launch.ExitNoInput, fmt.Errorf("no checkpoint or other weights: %w\nhint: "+
			"give a checkpoint, the folder of a run, a Hugging Face folder, a .bin of llama2.c, or stories260k, which is bundled", err))
	}
	if isCheckpoint(path) {
		c, err := load(ctx, path)
		if err != nil {
			return nil, "", err
		}
		defer c.Close()
		if path = c.Path; given == nil && !fileIn(path, llamafile.ConfigFile) {
			if given, err = configOfRecipe(c); err != nil {
				return nil, "", launch.WithCode(launch.ExitNoInput, err)
			}
		}
	}
	if dir = path; !st.IsDir() {
		dir = filepath.Dir(path)
	}
	m, err = llamafile.OpenWith(path, given)
	return m, dir, launch.WithCode(launch.ExitNoInput, err)
}

func fileIn(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// configOfRecipe derives a checkpoint's model from the recipe that it was trained with.
func configOfRecipe(c *checkpoint.Checkpoint) (*llama.Config, error) {
	if c.State.Recipe == "" {
		return nil, nil // opening it will report what is missing
	}
	r, err := recipes.Decode(c.State.Recipe, "recipe of "+c.Path)
	if err != nil {
		return nil, err
	}
	vocab, head := 0, false
	if f := c.File(checkpoint.ModelFile); f != nil {
		if t, ok := f.Lookup("model.embed_tokens.weight"); ok && len(t.Shape) == 2 {
			vocab = int(t.Shape[0])
		}
		_, head = f.Lookup("lm_head.weight")
	}
	cfg, err := assemble.Llama(r, text.Info{Vocab: vocab})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path, err)
	}
	cfg.Tied = !head
	return &cfg, nil
}

// llamaOf returns the configuration of a checkpoint's Llama, nil if it is another model or unknown.
func llamaOf(c *checkpoint.Checkpoint) *llama.Config {
	if fileIn(c.Path, llamafile.ConfigFile) {
		if cfg, err := llamafile.ReadConfig(c.Path); err == nil {
			return &cfg
		}
	}
	cfg, err := configOfRecipe(c)
	if err != nil {
		return nil
	}
	return cfg
}

// weightsInspection is what inspect shows about weights that are not a gotrain checkpoint.
type weightsInspection struct {
	Path       string            `json:"path"`
	Format     string            `json:"format"`
	Note       string            `json:"note,omitempty"` // why the configuration is missing
	Size       string            `json:"size,omitempty"` // name of the published model with this shape
	Config     *llama.Config     `json:"config,omitempty"`
	Parameters int64             `json:"parameters"`
	Bytes      int64             `json:"bytes"`
	DTypes     map[string]int    `json:"dtypes"` // tensors of each
	Tensors    []inspectedTensor `json:"tensors"`
}

type inspectedTensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func (in *weightsInspection) add(name string, dtype safetensors.DType, shape []int) {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	in.Parameters += n
	in.Bytes += n * dtype.Size()
	in.DTypes[string(dtype)]++
	in.Tensors = append(in.Tensors, inspectedTensor{name, string(dtype), shape})
}

// inspectWeights opens weights: a Llama of any format, or else any safetensors.
func inspectWeights(path string) (*weightsInspection, error) {
	in := &weightsInspection{Path: path, DTypes: map[string]int{}}
	m, err := llamafile.Open(path)
	if err == nil {
		defer m.Close()
		c := m.Config()
		in.Format, in.Config, in.Size = m.Format(), &c, sizeName(c)
		for _, name := range m.Names() {
			shape, _ := m.Shape(name)
			in.add(name, m.DType(name), shape)
		}
		return in, nil
	}
	set, other := safetensors.OpenSet(path)
	if other != nil || !errors.Is(err, llamafile.ErrNotLlama) && !errors.Is(err, llamafile.ErrNoConfig) {
		return nil, launch.WithCode(launch.ExitNoInput, err)
	}
	defer set.Close()
	in.Format, in.Note = "safetensors", "not a Llama's"
	if errors.Is(err, llamafile.ErrNoConfig) {
		in.Note = "names of a Llama, but " + llamafile.ErrNoConfig.Error()
	}
	for _, name := range set.Names() {
		t, _, _ := set.Lookup(name)
		shape := make([]int, len(t.Shape))
		for i, d := range t.Shape {
			shape[i] = int(d)
		}
		in.add(name, t.DType, shape)
	}
	return in, nil
}

// sizeName returns the published model with this shape.
func sizeName(c llama.Config) string {
	for _, name := range llama.Names() {
		if p, _ := llama.Named(name); p.Dim == c.Dim && p.Hidden == c.Hidden && p.Layers == c.Layers && p.Heads == c.Heads && p.KVHeads == c.KVHeads &&
			p.Vocab == c.Vocab && p.Tied == c.Tied && p.Scaling == c.Scaling {
			return name
		}
	}
	return ""
}
