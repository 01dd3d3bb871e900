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

// words opens the data of language models, by data.kind.
var words = map[string]func(ctx context.Context, r *recipes.Recipe, root, split string) (*text.Corpus, error){
	"text":   cutText,
	"tokens": openShards,
}

// openText opens one split of a text. Evaluation uses every token; training drops the last ones if they do not fill a sequence.
func openText(ctx context.Context, r *recipes.Recipe, root, split string, training bool) (data.Source, error) {
	seq, err := Sequence(r)
	if err != nil {
		return nil, coded(launch.ExitRecipe, err)
	}
	c, err := words[r.Data.Kind](ctx, r, root, split)
	if err != nil {
		return nil, err
	}
	// A single document has no others to be kept apart from.
	o := text.SourceOptions{Seq: seq, Documents: r.Text.Apart && c.Documents() != 1, Pad: !training || r.Data.Tail == "pad"}
	if m, err := llamaConfig(r, c.Info()); err == nil { // an error is reported when the model is built
		o.Vocab = m.Vocab // a damaged id is then reported with its file and position
	}
	return text.NewSource(c, o)
}

// openShards maps shards written by gotrain tokenize. If the recipe names a tokenizer, it must be the one that they were made with.
func openShards(_ context.Context, r *recipes.Recipe, root, split string) (*text.Corpus, error) {
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

// cutText tokenises the files of a folder, or a single file.
func cutText(ctx context.Context, r *recipes.Recipe, root, split string) (*text.Corpus, error) {
	t, err := Tokenizer(r)
	if err != nil {
		return nil, err
	}
	pattern := filepath.Join(root, filepath.FromSlash(split))
	files, err := foreign.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("recipes: data.train_split or data.eval_split: %q: %w", split, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf(
			"recipes: no text files match %s\nhint: set data.train_split and data.eval_split to names or patterns of files below data.root",
			pattern,
		)
	}
	c, _, err := text.FromText(ctx, files, text.Options{
		Tokenizer: t, Documents: text.Documents{Separator: r.Text.Separator}, BOS: r.Text.BOS && t.BOS() >= 0, EOS: r.Text.EOS && t.EOS() >= 0,
	})
	return c, err
}

// Tokenizer opens the recipe's tokenizer, which is located like a data set.
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

// beside returns the files that let other programs read a Llama checkpoint in Hugging Face format: the model's configuration, and its tokenizer of
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

// tokenizerName is the name of a tokenizer's file in a checkpoint: one that tokenizer.Open finds, and that no other file has.
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

// infoOf returns what a source knows about its token ids.
func infoOf(src data.Source) text.Info {
	if s, ok := src.(*text.Source); ok {
		return s.Corpus().Info()
	}
	return text.Info{}
}

// syntheticTokens makes random sequences.
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
