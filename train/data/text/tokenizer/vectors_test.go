package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// row is one text of a file of vectors, with what another implementation made of it.
type row struct {
	Text    string  `json:"text"`
	IDs     []int32 `json:"ids"`
	Decoded *string `json:"decoded"`
}

func vectors(t testing.TB, name string) []row {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Rows []row }
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Rows) < 30 {
		t.Fatalf("%s has only %d rows", name, len(v.Rows))
	}
	return v.Rows
}

// check compares with vectors and gives the number of rows that agree. special: text that spells special tokens was read as these.
func check(t *testing.T, tok tokenizer.Tokenizer, rows []row, special bool) {
	t.Helper()
	good := 0
	for _, r := range rows {
		encode := tok.Encode
		if special {
			encode = tok.(tokenizer.SpecialEncoder).EncodeSpecial
		}
		got := encode(nil, r.Text)
		if !slices.Equal(got, r.IDs) {
			t.Errorf("%q: got %v, want %v", r.Text, got, r.IDs)
			continue
		}
		if r.Decoded != nil {
			if d := string(tok.Decode(nil, got)); d != *r.Decoded {
				t.Errorf("%v: decoded %q, want %q", got, d, *r.Decoded)
				continue
			}
		}
		good++
	}
	t.Logf("%d of %d rows agree", good, len(rows))
}

func open(t testing.TB, path string) tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestMistralModel(t *testing.T) {
	tok := open(t, "testdata/mistral-v1.model")
	if tok.Vocab() != 32000 || tok.BOS() != 1 || tok.EOS() != 2 || tok.Kind() != tokenizer.SentencePiece {
		t.Errorf("vocab %d, bos %d, eos %d, kind %s", tok.Vocab(), tok.BOS(), tok.EOS(), tok.Kind())
	}
	check(t, tok, vectors(t, "mistral-v1.vectors.json"), false)
}

// The ids are those of stories260k's reference, without its BOS.
func TestLlama2C(t *testing.T) {
	tok := open(t, "testdata/tok512.bin")
	if tok.Vocab() != 512 || tok.BOS() != 1 || tok.EOS() != 2 || tok.Kind() != tokenizer.Llama2C {
		t.Errorf("vocab %d, bos %d, eos %d, kind %s", tok.Vocab(), tok.BOS(), tok.EOS(), tok.Kind())
	}
	for text, want := range map[string][]int32{
		"Once upon a time": {403, 407, 261, 378},
		"Hello, world!":    {346, 306, 414, 432, 263, 304, 341, 443},
		" two  spaces":     {410, 259, 424, 414, 410, 262, 427, 412, 331, 419},
		"café 你好 😀":        {280, 412, 431, 485, 410, 231, 192, 163, 232, 168, 192, 410, 243, 162, 155, 131},
		"tabs\tand\nlines": {259, 412, 430, 419, 12, 412, 264, 13, 421, 271, 406},
		"":                 nil,
	} {
		got := tok.Encode(nil, text)
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if d := string(tok.Decode(nil, got)); d != text {
			t.Errorf("%q came back as %q", text, d)
		}
	}
}

func wantError(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}
