package assemble

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/graph/models/llama"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train/checkpoint/llamafile"
	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"

	"github.com/gotrain/gotrain/train/foreign"
)

// words are the sources of models of language, by data.kind.
var words = map[string]func(r *recipes.Recipe, root, split string) (*text.Corpus, error){
	"text":   cutText,
	"tokens": openShards,
}

// openText opens one part of a text. In evaluation no token is left out; in training the last ones, which fill no sequence, are.
func openText(r *recipes.Recipe, root, split string, training bool) (data.Source, error) {
	seq, err := Sequence(r)
	if err != nil {
		return nil, coded(launch.ExitRecipe, err)
	}
	c, err := words[r.Data.Kind](r, root, split)
	if err != nil {
		return nil, err
	}
	o := text.SourceOptions{Seq: seq, Documents: r.Text.Apart && c.Documents() != 1, Pad: !training || r.Data.Tail == "pad"} // one document needs nothing to keep it apart from others
	if m, err := llamaConfig(r, c.Info()); err == nil {                                                                      // its error comes with the model
		o.Vocab = m.Vocab // a damaged id is then found with its file and place
	}
	return text.NewSource(c, o)
}

// openShards maps what gotrain tokenize made. A tokenizer in the recipe must be the one that they were made with.
func openShards(r *recipes.Recipe, root, split string) (*text.Corpus, error) {
	c, err := text.OpenShards(root, split)
	if err != nil || r.Text.Tokenizer == "" {
		return c, err
	}
	t, err := Tokenizer(r)
	if err == nil {
		err = c.Match(t)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// cutText tokenises files of a folder, or a single one.
func cutText(r *recipes.Recipe, root, split string) (*text.Corpus, error) {
	t, err := Tokenizer(r)
	if err != nil {
		return nil, err
	}
	pattern := filepath.Join(root, filepath.FromSlash(split))
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("recipes: data.train_split or data.eval_split: %q: %w", split, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("recipes: no text at %s\nhint: data.train_split and data.eval_split are names or patterns of files below data.root", pattern)
	}
	c, _, err := text.FromText(context.Background(), files, text.Options{
		Tokenizer: t, Documents: text.Documents{Separator: r.Text.Separator}, BOS: r.Text.BOS && t.BOS() >= 0, EOS: r.Text.EOS && t.EOS() >= 0,
	})
	return c, err
}

// Tokenizer is that of the recipe, found like a data set.
func Tokenizer(r *recipes.Recipe) (tokenizer.Tokenizer, error) {
	at, err := tokenizerPath(r)
	if err != nil {
		return nil, err
	}
	return tokenizer.Open(at)
}

func tokenizerPath(r *recipes.Recipe) (string, error) {
	at, err := data.Locate(r.Text.Tokenizer, near(r)...)
	if err != nil {
		return "", fmt.Errorf("recipes: text.tokenizer: %w", err)
	}
	return at, nil
}

// beside are the files that let other programs read a checkpoint of a Llama as what Hugging Face wrote: what the model is, and its tokenizer, of
// the given kind.
func beside(r *recipes.Recipe, model llama.Config, kind string) (map[string][]byte, error) {
	config, err := llamafile.EncodeConfig(model, safetensors.F32)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{llamafile.ConfigFile: config}
	if r.Text.Tokenizer == "" {
		return out, nil
	}
	at, err := tokenizerPath(r)
	if err != nil {
		return nil, err
	}
	files, err := tokenizer.Files(at)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		name := filepath.Base(f)
		if i == 0 {
			name = tokenizerName(name, kind)
		}
		if out[name], err = foreign.ReadFile(f, 64<<20); err != nil {
			return nil, fmt.Errorf("recipes: text.tokenizer: %w", err)
		}
	}
	return out, nil
}

// tokenizerName is what a tokenizer's file is called in a checkpoint: a name by which it is found there, and which is no other file's.
func tokenizerName(name, kind string) string {
	if ok, _ := filepath.Match("tok*.bin", name); ok {
		return name
	}
	switch kind {
	case tokenizer.HuggingFace:
		return "tokenizer.json"
	case tokenizer.Llama2C:
		return "tokenizer.bin"
	}
	return "tokenizer.model"
}

// infoOf is what a source knows of its ids.
func infoOf(src data.Source) text.Info {
	if s, ok := src.(*text.Source); ok {
		return s.Corpus().Info()
	}
	return text.Info{}
}

// syntheticTokens are sequences that mean nothing.
func syntheticTokens(r *recipes.Recipe, n int) (data.Source, error) {
	seq, err := Sequence(r)
	if err != nil {
		return nil, coded(launch.ExitRecipe, err)
	}
	c, err := llamaConfig(r, text.Info{})
	if err != nil {
		return nil, coded(launch.ExitRecipe, err)
	}
	return data.NewSyntheticTokens(r.Run.Seed, n, c.Vocab, seq)
}
