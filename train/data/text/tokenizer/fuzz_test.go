package tokenizer_test

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// tiny files of every kind, as seeds.
func tinyFiles(t testing.TB) [][]byte {
	t.Helper()
	sp := "\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02" + "\n\x0c\n\x03<s>\x15\x00\x00\x00\x00\x18\x03" + "\n\r\n\x04</s>\x15\x00\x00\x00\x00\x18\x03" +
		"\n\x0a\n\x03▁\x15\x00\x00\x80\xbf" + "\n\x08\n\x01a\x15\x00\x00\x00\xc0" + "\n\x0b\n\x04▁a\x15\x00\x00\x00\xbf" + "\x12\x02\x18\x02" +
		"\x1a\x04\x18\x01\x20\x00"
	ranks := strings.Builder{}
	for i := range 40 {
		ranks.WriteString("YQ== " + string(rune('0'+i%10)) + "\n")
	}
	bin, err := os.ReadFile("testdata/tok512.bin")
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{
		[]byte(sp), []byte(ranks.String()), bin, bin[:4000],
		[]byte(`{"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"vocab":{"<unk>":0,"a":1,"b":2,"ab":3},"merges":["a b"]}}`),
		[]byte(
			`{"added_tokens":[{"id":4,"content":"<s>","special":true}],"normalizer":{"type":"Prepend","prepend":"▁"},"model":{"vocab":{"▁":0,"a":1,"▁a":2},"merges":[["▁","a"]]}}`,
		),
		[]byte("version https://git-lfs.github.com/spec/v1\n"),
		{0x0a}, nil,
	}
}

// The seed of SentencePiece's kind is a whole model.
func TestTinySentencePiece(t *testing.T) {
	tok := parse(t, tinyFiles(t)[0])
	if ids := tok.Encode(nil, "a aa"); len(ids) != 3 || ids[0] != 5 || ids[1] != 5 || ids[2] != 4 {
		t.Error(ids)
	}
	if ids := tok.Encode(nil, "xyz"); len(ids) != 2 || ids[1] != 0 { // unknown ones are one
		t.Error(ids)
	}
}

// Whatever the file: an error, or a tokenizer that works on any text.
func FuzzOpen(f *testing.F) {
	for _, raw := range tinyFiles(f) {
		f.Add(raw, "a b <s>é\xff")
	}
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		tok, err := tokenizer.Parse(raw)
		if err != nil {
			return
		}
		s := tok.(tokenizer.SpecialEncoder)
		for _, ids := range [][]int32{s.Encode(nil, text), s.EncodeSpecial(nil, text)} {
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Vocab() {
					t.Fatalf("id %d of a vocabulary of %d", id, tok.Vocab())
				}
				tok.(tokenizer.Piecer).Piece(id)
			}
			tok.Decode(nil, ids)
		}
		tok.Fingerprint()
	})
}

// Where every byte has a token, text comes back; and in a stream, in whole characters.
func FuzzRoundTrip(f *testing.F) {
	type entry struct {
		tokenizer.Tokenizer
		chars bool // U+2581 is a space and bytes that are no UTF-8 are U+FFFD
	}
	var toks []entry
	for _, name := range []string{"mistral-v1.model", "tok512.bin", "bytelevel.json", "characters.json"} {
		toks = append(toks, entry{open(f, "testdata/"+name), name == "mistral-v1.model" || name == "characters.json"})
	}
	for _, s := range []string{"", " ", "Once upon a time", "  two  spaces ", "<s></s><unk><0x0A>", "café 😀\n\t", "'s 'LL 123456", "\xff\xfe", "é\xc3",
		"\u2581", strings.Repeat("ab", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			want := text
			if tok.chars {
				want = strings.ReplaceAll(valid(text), "▁", " ")
			}
			ids := tok.Encode(nil, text)
			got := string(tok.Decode(nil, ids))
			if got != want {
				t.Errorf("%s: %q came back as %q", tok.Kind(), want, got)
			}
			s := tokenizer.NewStream(tok)
			var all []byte
			for _, id := range ids {
				n := len(all)
				if all = s.Push(all, id); !utf8.Valid(all[n:]) {
					t.Errorf("%s: the stream gave %q", tok.Kind(), all[n:])
				}
			}
			all = s.Flush(all)
			if utf8.ValidString(want) && string(all) != want {
				t.Errorf("%s: the stream gave %q of %q", tok.Kind(), all, want)
			}
		}
	})
}

func valid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
