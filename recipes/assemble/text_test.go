package assemble

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/train/data/text"
	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// Shards go with the tokenizer that made them: it may be named, and then lies in checkpoints; another one is an error.
func TestShardsAndTheirTokenizer(t *testing.T) {
	tok, err := tokenizer.Open(filepath.FromSlash("../data/stories260k"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shards [new]*") // a folder is no pattern
	_, err = text.Pack(t.Context(), dir, []string{filepath.Join(shortText(t), "train.txt")}, text.PackOptions{Options: text.Options{
		Tokenizer: tok, Documents: text.Documents{Separator: text.ByBlank}, BOS: true, ValFraction: 0.2,
	}})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"data.kind=tokens", "data.root=" + dir, "text.sequence=32"}
	for name, want := range map[string]string{
		"": "", "stories260k": "",
		filepath.FromSlash("../../train/data/text/tokenizer/testdata/mistral-v1.model"): "made with another tokenizer",
		"nowhere": "text.tokenizer",
	} {
		if strings.HasPrefix(name, "..") {
			name, _ = filepath.Abs(name)
		}
		c, err := Config(t.Context(), recipe(t, "llama-tiny", append(sets, "text.tokenizer="+name)...), rank(1))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) || launch.ExitCode(err) != launch.ExitNoInput {
				t.Errorf("%q: %v, exit code %d", name, err, launch.ExitCode(err))
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if has := c.Beside["tok512.bin"] != nil; has != (name != "") || c.Beside["config.json"] == nil {
			t.Errorf("%q: a tokenizer lies in checkpoints: %t", name, has)
		}
		if len(c.Data.Fields()) != 3 || c.Eval == nil { // paragraphs are documents: segments keep them apart
			t.Errorf("%q: fields %v", name, c.Data.Fields())
		}
	}
}

// Text is found in a folder whose name looks like a pattern.
func TestTextInAFolderLikeAPattern(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "text [old]*")
	if err := os.Rename(shortText(t), dir); err != nil {
		t.Fatal(err)
	}
	c, err := Config(t.Context(), recipe(t, "llama-tiny", "data.root="+dir, "text.sequence=32"), rank(1))
	if err != nil {
		t.Fatal(err)
	}
	if c.Data.Len() == 0 || c.Eval.Len() == 0 {
		t.Errorf("%d and %d samples", c.Data.Len(), c.Eval.Len())
	}
}
