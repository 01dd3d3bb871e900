package tokenizer_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	_, err := tokenizer.Open(dir)
	if wantError(t, err, "has no tokenizer"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	copyTo := func(from, to string) {
		raw, err := os.ReadFile(filepath.Join("testdata", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ from, to, kind string }{
		{"tok512.bin", "tok512.bin", tokenizer.Llama2C},
		{"mistral-v1.model", "tokenizer.model", tokenizer.SentencePiece},
		{"characters.json", "tokenizer.json", tokenizer.HuggingFace},
	} {
		copyTo(c.from, c.to)
		if tok := open(t, dir); tok.Kind() != c.kind {
			t.Errorf("with %s: %s", c.to, tok.Kind())
		}
	}
	dir = t.TempDir()
	copyTo("tok512.bin", "tok1.bin")
	copyTo("tok512.bin", "tok2.bin")
	_, err = tokenizer.Open(dir)
	wantError(t, err, "several tokenizers: tok1.bin, tok2.bin")
	if _, err = tokenizer.Open(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestSentencePieceErrors(t *testing.T) {
	good := tinyFiles(t)[0]
	for _, c := range []struct {
		raw  []byte
		want string
	}{
		{bytes.Replace(good, []byte("\x12\x02\x18\x02"), []byte("\x12\x02\x18\x01"), 1), "this is a unigram model"},
		{bytes.Replace(good, []byte("\x1a\x04\x18\x01\x20\x00"), []byte("\x1a\x03\x12\x01x"), 1), "precompiled map"},
		{bytes.Replace(good, []byte("\x12\x02\x18\x02"), []byte("\x12\x03\xc0\x01\x01\x12\x02\x18\x02"), 1), "suffix"},
		{bytes.Replace(good, []byte("<s>"), []byte("<\xff>"), 1), "is not UTF-8"},
		{bytes.Replace(good, []byte("\x01a\x15\x00\x00\x00\xc0"), []byte("\x01a\x15\x00\x00\xc0\x7f"), 1), "is not a number"},
		{bytes.Replace(good, []byte("\n\x01a"), []byte("\n\x00\xc0"), 1), "protocol buffer"},
		{bytes.Replace(good, []byte("\x04▁a"), []byte("\x04▁▁"[:5]), 1), "is not UTF-8"},
		{bytes.Replace(good, []byte("<unk>\x15\x00\x00\x00\x00\x18\x02"), []byte("<unk>\x15\x00\x00\x00\x00\x18\x01"), 1), "no unknown piece"},
		{bytes.Replace(good, []byte("<unk>\x15\x00\x00\x00\x00\x18\x02"), []byte("<unk>\x15\x00\x00\x00\x00\x18\x06"), 1), "is not a byte"},
		{bytes.Replace(good, []byte("<unk>\x15\x00\x00\x00\x00\x18\x02"), []byte("<unk>\x15\x00\x00\x00\x00\x18\x05"), 1), "marked unused"},
		{append(slices.Clone(good), "\n\x03\n\x01a"...), "is a duplicate"},
		{good[:len(good)-1], "truncated"},
		{[]byte("\n\x0a"), "truncated"},
	} {
		_, err := tokenizer.Parse(c.raw)
		wantError(t, err, c.want)
	}
}

func TestLlama2CErrors(t *testing.T) {
	good, err := os.ReadFile("testdata/tok512.bin")
	if err != nil {
		t.Fatal(err)
	}
	edit := func(at int, b ...byte) []byte {
		raw := bytes.Clone(good)
		copy(raw[at:], b)
		return raw
	}
	for _, c := range []struct {
		raw  []byte
		want string
	}{
		{good[:len(good)-1], "token 511 has"},
		{good[:len(good)-12], "token 510 has"},
		{good[:3000], "truncated in token 214"},
		{edit(8, 0xff), "token 0 has 255 bytes"},
		{edit(4, 0, 0, 0xc0, 0x7f), "the score of token 0"},
		{bytes.Replace(good, []byte("<0x41>"), []byte("<0x42>"), 1), `token 68 is "<0x42>"`},
	} {
		_, err := tokenizer.Parse(c.raw)
		wantError(t, err, c.want)
	}
}

// byteRanks is a rank file of the 256 bytes and more tokens.
func byteRanks(more ...string) []byte {
	var b bytes.Buffer
	for i := range 256 {
		fmt.Fprintln(&b, base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	for i, s := range more {
		fmt.Fprintln(&b, base64.StdEncoding.EncodeToString([]byte(s)), 256+i)
	}
	return b.Bytes()
}

func TestRanks(t *testing.T) {
	raw := byteRanks("ab", " c", "abc")
	o := tokenizer.RankOptions{Pattern: tokenizer.PatternGPT2, Special: map[string]int32{"<|end|>": 300}, EOS: "<|end|>"}
	tok, err := tokenizer.ParseRanks(raw, o)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Vocab() != 301 || tok.BOS() != -1 || tok.EOS() != 300 || tok.Kind() != tokenizer.Tiktoken {
		t.Errorf("vocab %d, bos %d, eos %d, %s", tok.Vocab(), tok.BOS(), tok.EOS(), tok.Kind())
	}
	s := tok.(tokenizer.SpecialEncoder)
	if got := s.EncodeSpecial(nil, "abc c<|end|>"); !slices.Equal(got, []int32{258, 257, 300}) {
		t.Error(got)
	}
	if got := s.Encode(nil, "<|end|>"); len(got) != 7 {
		t.Error(got)
	}
	for _, c := range []struct {
		raw  []byte
		o    tokenizer.RankOptions
		want string
	}{
		{raw, tokenizer.RankOptions{}, "259 ranks match no known vocabulary"},
		{raw, tokenizer.RankOptions{Pattern: `\w+`}, `unknown pattern "\\w+"`},
		{raw, tokenizer.RankOptions{Pattern: "gpt2", BOS: "<s>"}, `"<s>" is not among`},
		{raw, tokenizer.RankOptions{Pattern: "gpt2", Special: map[string]int32{"<s>": 5}}, `has the id of "\x05"`},
		{raw, tokenizer.RankOptions{Pattern: "gpt2", Special: map[string]int32{"<s>": -5}}, `has id -5`},
		{bytes.Replace(raw, []byte("AA== 0\n"), nil, 1), o, "byte 0x00 has no token"},
		{byteRanks("ab", "ab"), o, "line 258"},
		{[]byte("AA== 0\nAQ== 0\n"), o, "same rank 0"},
		{[]byte("AA== 0\nAQ==\n"), o, "line 2: want a base64 token"},
		{[]byte("AA== 0\n!! 1\n"), o, "line 2: illegal base64"},
		{[]byte("AA== 99999999\n"), o, "line 1: invalid rank"},
	} {
		_, err := tokenizer.ParseRanks(c.raw, c.o)
		wantError(t, err, c.want)
	}
}

func TestDecodeOutside(t *testing.T) {
	tok := open(t, "testdata/tok512.bin")
	if got := string(tok.Decode(nil, []int32{403, -1, 512, 1 << 30})); got != "Once\ufffd\ufffd\ufffd" {
		t.Errorf("%q", got)
	}
	p := tok.(tokenizer.Piecer)
	if !strings.Contains(p.Piece(512), "no token") || p.Piece(3) != "<0x00>" {
		t.Error(p.Piece(512), p.Piece(3))
	}
}

// A token after BOS loses its space; other tokens do not.
func TestStreamAfterBOS(t *testing.T) {
	tok := open(t, "testdata/tok512.bin")
	s := tokenizer.NewStream(tok)
	var got []string
	for _, id := range []int32{1, 403, 407, 1, 403, 2, 407} {
		got = append(got, string(s.Push(nil, id)))
	}
	got = append(got, string(s.Flush(nil)), string(s.Push(nil, 403)))
	if want := []string{"", "Once", " upon", "", "Once", "", " upon", "", "Once"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
