package foreign

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2Jb", "é\u009b\xff", "\u202e\n\t\r", "世界"} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) {
		got := Printable(s)
		if !utf8.ValidString(got) || !clean(got) || Printable(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
		if clean(s) && got != s {
			t.Fatalf("%q was changed to %q", s, got)
		}
		var b strings.Builder
		w := Writer(&b)
		cut = max(0, min(cut, len(s)))
		w.Write([]byte(s[:cut]))
		w.Write([]byte(s[cut:]))
		if !strings.HasPrefix(got, b.String()) || len(got)-len(b.String()) > 4*utf8.UTFMax {
			t.Fatalf("%q in two pieces became %q, want %q", s, b.String(), got)
		}
	})
}
