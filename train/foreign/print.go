package foreign

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Printable replaces what a terminal would interpret instead of showing: control characters other than tab and newline, marks that change the
// direction of text, and invalid UTF-8. They become escapes as in Go: \x1b, \u202e. Inside JSON strings, which have no raw control characters, the
// result is JSON with the same meaning.
func Printable(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		escape(&b, r, s[i:i+n])
		i += n
	}
	return b.String()
}

// Line is Printable on one line: newlines and tabs become escapes too. Use it for names in tables and lists.
func Line(s string) string { return lines.Replace(Printable(s)) }

var lines = strings.NewReplacer("\n", `\n`, "\t", `\t`)

func clean(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if obeyed(r, n) {
			return false
		}
		i += n
	}
	return true
}

// obeyed reports whether a terminal interprets a rune of n bytes instead of showing it.
func obeyed(r rune, n int) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
		return true
	case r == utf8.RuneError && n == 1:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x2028, r == 0x2029: // direction, lines
		return true
	}
	return false
}

func escape(b *strings.Builder, r rune, text string) {
	switch {
	case !obeyed(r, len(text)):
		b.WriteString(text)
	case r == '\r':
		b.WriteString(`\r`)
	case r == utf8.RuneError:
		fmt.Fprintf(b, `\x%02x`, text[0])
	case r < 0x20:
		fmt.Fprintf(b, `\x%02x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

// Writer writes text to w as Printable makes it. A character that is split across two writes waits for its second half; if that never comes, it is
// dropped.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	rest []byte // start of a character, less than utf8.UTFMax bytes
}

func (w *writer) Write(p []byte) (int, error) {
	text := string(append(w.rest, p...))
	w.rest = w.rest[:0]
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				w.rest = append(w.rest, tail...)
				text = text[:len(text)-n]
			}
			break
		}
	}
	if _, err := io.WriteString(w.w, Printable(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}
