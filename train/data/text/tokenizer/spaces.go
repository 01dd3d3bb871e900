package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// lead says when a space is put before text.
type lead uint8

const (
	leadNone    lead = iota
	leadAlways       // before every stretch of text that is not empty
	leadMissing      // where the stretch does not begin with a space
	leadFirst        // leadMissing, for the beginning of the whole text only
)

// spaces is what is done to a stretch of text before it is cut into words. Tokenizers do it at two places: a normalizer before tokens of normalised text
// are looked for, a pre-tokenizer after that.
type spaces struct {
	valid  bool // invalid UTF-8 becomes U+FFFD
	tidy   bool // spaces at the ends go, runs of them become one
	mark   bool // a space becomes U+2581
	unmark bool // U+2581 becomes a space, as tokens have it inside this package
	lead   lead
	marked bool // what leads is U+2581
}

// apply does it. first: the stretch is the beginning of the whole text.
func (p *spaces) apply(text string, first bool) string {
	if p.valid && !utf8.ValidString(text) {
		text = replaceInvalid(text)
	}
	if p.tidy { // before U+2581 becomes a space: only real spaces are tidied
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }), " ")
		text = strings.TrimRight(text, " ▁")
	}
	switch {
	case p.unmark:
		text = strings.ReplaceAll(text, "▁", " ")
	case p.mark:
		text = strings.ReplaceAll(text, " ", "▁")
	}
	if text == "" {
		return text
	}
	space := " "
	if p.marked {
		space = "▁"
	}
	if p.lead == leadAlways || (p.lead == leadMissing || p.lead == leadFirst && first) && text[0] != ' ' {
		return space + text
	}
	return text
}

// replaceInvalid replaces every invalid byte by U+FFFD; strings.ToValidUTF8 writes one per run.
func replaceInvalid(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}
