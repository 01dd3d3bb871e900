package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzShardHeader(f *testing.F) {
	for _, w := range []int{2, 4} {
		h := make([]byte, headerBytes)
		putHeader(h, w, 3)
		f.Add(h, int64(headerBytes+3*w))
		f.Add(h[:100], int64(100))
	}
	f.Fuzz(func(t *testing.T, h []byte, size int64) {
		w, n, err := readHeader(h, size)
		if err == nil && (w != 2 && w != 4 || n < 0 || headerBytes+n*int64(w) != size) {
			t.Fatalf("accepted %d tokens of %d bytes in a file of %d", n, w, size)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	for _, s := range []string{"", "a\n\nb\n", "\xef\xbb\xbfx", `{"text":"a"}` + "\n" + `{"text":3}`, "a\n<|end|>\nb", "\xff\n", "a\r\n\r\nb",
		strings.Repeat("x", 300)} {
		for how := range byte(6) {
			f.Add([]byte(s), how)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, how byte) {
		d := []Documents{{Separator: ByFile}, {Separator: ByLine}, {Separator: ByBlank}, {Separator: "<|end|>"}, {Field: "text"}, {Separator: ByBlank,
			ReplaceInvalid: true}}[int(how)%6]
		total := 0
		r := reader{Documents: d, emit: func(x doc) error {
			if !utf8.ValidString(x.text) {
				t.Fatalf("%q is not UTF-8", x.text)
			}
			if x.line < 1 || x.line > 1+bytes.Count(raw, []byte("\n")) {
				t.Fatalf("line %d of %q", x.line, raw)
			}
			total += len(x.text)
			return nil
		}}
		// Bytes that are no UTF-8 become three at most each, where they are replaced.
		if err := r.from("x", bytes.NewReader(raw)); err == nil && total > 3*len(raw) {
			t.Fatalf("%d bytes of documents from %d", total, len(raw))
		}
	})
}
