package llamafile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// ConfigFromShapes derives a configuration from the shapes of parameters with Hugging Face's names. Shapes determine the widths, the layers, the
// vocabulary and whether the last layer is tied; given must supply the rest: Heads or HeadDim, Theta, NormEps and Context, and optionally Scaling,
// BOS and EOS. All missing settings are reported at once. Further settings in given must agree with the shapes.
func ConfigFromShapes(shapes map[string][]int, given llama.Config) (llama.Config, error) {
	c, err := configFromShapes(shapes, given)
	if err != nil {
		return llama.Config{}, fmt.Errorf("llamafile: configuration from shapes: %w", err)
	}
	return c, nil
}

func configFromShapes(shapes map[string][]int, given llama.Config) (llama.Config, error) {
	c := given
	first := "model.layers.0."
	matrix := func(name string) (rows, cols int, err error) {
		s := shapes[name]
		if len(s) != 2 || s[0] < 1 || s[1] < 1 {
			return 0, 0, fmt.Errorf("%s has shape %v, want a matrix", name, s)
		}
		return s[0], s[1], nil
	}
	var errs []error
	get := func(name string) (int, int) {
		r, w, err := matrix(name)
		errs = append(errs, err)
		return r, w
	}
	c.Vocab, c.Dim = get(embedName)
	c.Hidden, _ = get(first + "mlp.gate_proj.weight")
	q, _ := get(first + "self_attn.q_proj.weight")
	kv, _ := get(first + "self_attn.k_proj.weight")
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	for c.Layers = 0; shapes[fmt.Sprintf("model.layers.%d.input_layernorm.weight", c.Layers)] != nil; c.Layers++ {
	}
	_, head := shapes[headName]
	c.Tied = !head
	missing := func(is bool, what string) {
		if is {
			errs = append(errs, fmt.Errorf("the shapes do not determine %s", what))
		}
	}
	missing(given.Heads == 0 && given.HeadDim == 0, "the heads: specify their number or their width")
	missing(given.Theta == 0, "theta of the rotary embedding")
	missing(given.NormEps == 0, "norm_eps")
	missing(given.Context == 0, "the context")
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	if err := splitHeads(&c, q, kv); err != nil {
		return c, err
	}
	return c, errors.Join(agree(given, c), limits(c))
}

// splitHeads divides the rows of q and k into heads.
func splitHeads(c *llama.Config, q, kv int) error {
	if c.HeadDim == 0 {
		if c.Heads < 1 || q%c.Heads != 0 {
			return fmt.Errorf("%d heads do not divide the %d rows of q_proj", q, c.Heads)
		}
		c.HeadDim = q / c.Heads
	}
	if c.HeadDim < 1 || q%c.HeadDim != 0 || kv%c.HeadDim != 0 {
		return fmt.Errorf("heads of width %d do not divide the %d rows of q_proj and the %d of k_proj", c.HeadDim, q, kv)
	}
	c.Heads, c.KVHeads = q/c.HeadDim, kv/c.HeadDim
	if c.HeadDim*c.Heads == c.Dim {
		c.HeadDim = 0 // it follows from the other values
	}
	return nil
}

// agree compares the given configuration with the shapes.
func agree(given, c llama.Config) error {
	var errs []error
	for _, d := range []struct {
		name       string
		given, got int
	}{{"dim", given.Dim, c.Dim}, {"hidden", given.Hidden, c.Hidden}, {"layers", given.Layers, c.Layers}, {"heads", given.Heads, c.Heads},
		{"kv_heads", given.KVHeads, c.KVHeads}, {"vocab", given.Vocab, c.Vocab}} {
		if d.given != 0 && d.given != d.got {
			errs = append(errs, fmt.Errorf("%s is given as %d, but the shapes give %d", d.name, d.given, d.got))
		}
	}
	return errors.Join(errs...)
}

// ConfigFromFile is ConfigFromShapes for a safetensors file or folder with Hugging Face's names.
func ConfigFromFile(path string, given llama.Config) (llama.Config, error) {
	set, err := safetensors.OpenSet(path)
	if err != nil {
		return llama.Config{}, fmt.Errorf("llamafile: %w", err)
	}
	defer set.Close()
	return ConfigFromShapes(dims(set), given)
}

// WriteConfig writes config.json into a folder, for example next to the weights of a checkpoint. It appears complete or not at all, and replaces an
// existing one.
func WriteConfig(dir string, c llama.Config, dtype safetensors.DType) error {
	raw, err := EncodeConfig(c, dtype)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, ConfigFile), raw)
}

func replaceFile(path string, raw []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), ".")+".*")
	if err != nil {
		return fmt.Errorf("llamafile: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Chmod(0o644) // temporary files are private
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("llamafile: write %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}
