package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// A scanner finds the end of the word that begins at text[i:], i < len(text). It stands for a regular expression with lookahead, which Go's regexp
// does not have; nor would it be quick enough.
type scanner func(text string, i int) int

// Regular expressions as tokenizers spell them. A scanner is chosen by the text of the expression.
const (
	patternGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternR50K   = `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
	patternR50K2  = `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// Pattern names for RankOptions.
const (
	PatternGPT2   = "gpt2"   // r50k_base's and GPT-2's
	PatternLlama3 = "llama3" // cl100k_base's and Llama 3's
)

var scanners = map[string]scanner{
	patternGPT2: scanGPT2, patternR50K: scanGPT2, patternR50K2: scanGPT2,
	patternLlama3: func(s string, i int) int { return scanLlama3(s, i, 3) },
	patternQwen2:  func(s string, i int) int { return scanLlama3(s, i, 1) },
	PatternGPT2:   scanGPT2,
	PatternLlama3: func(s string, i int) int { return scanLlama3(s, i, 3) },
}

// class of a character in these expressions.
type class uint8

const (
	end    class = iota // behind the text
	other               // [^\s\p{L}\p{N}]
	letter              // \p{L}
	number              // \p{N}
	space               // \s, which is White_Space
)

var asciiClass = func() (t [128]class) {
	for i := range t {
		t[i] = classOf(rune(i))
	}
	return t
}()

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// at is the class and width of the character at text[i:]. An invalid byte counts as one character.
func at(s string, i int) (class, int) {
	if i >= len(s) {
		return end, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r == utf8.RuneError {
		return other, n
	}
	return classOf(r), n
}

// run is the end of the characters of one class from i on.
func run(s string, i int, want class) int {
	for {
		c, n := at(s, i)
		if c != want {
			return i
		}
		i += n
	}
}

func scanGPT2(s string, i int) int {
	if s[i] == '\'' {
		if n := contraction(s[i+1:], false); n > 0 {
			return i + 1 + n
		}
	}
	c, n := at(s, i)
	if s[i] == ' ' { // " ?": one space may lead a word
		if after, _ := at(s, i+1); after != space && after != end {
			c, n = after, 1
		}
	}
	if c != space {
		return run(s, i+boolInt(s[i] == ' '), c)
	}
	return scanSpace(s, i, n)
}

// scanDigits is scanGPT2 on what is between digits, each of which is a word. A space before one has none to lead.
func scanDigits(s string, i int) int {
	c, n := at(s, i)
	if c == number {
		return i + n
	}
	if c == space {
		stop := run(s, i, space)
		if after, _ := at(s, stop); after == number {
			return stop
		}
	}
	return scanGPT2(s, i)
}

func scanLlama3(s string, i, digits int) int {
	if s[i] == '\'' {
		if n := contraction(s[i+1:], true); n > 0 {
			return i + 1 + n
		}
	}
	c, n := at(s, i)
	switch {
	case c == letter:
		return run(s, i, letter)
	case c == number:
		for j := 0; j < digits && c == number; j++ {
			i += n
			c, n = at(s, i)
		}
		return i
	}
	if s[i] != '\r' && s[i] != '\n' { // any other character may lead letters
		if after, _ := at(s, i+n); after == letter {
			return run(s, i+n, letter)
		}
	}
	after, _ := at(s, i+1)
	if c == other || s[i] == ' ' && after == other {
		for i = run(s, i+boolInt(s[i] == ' '), other); i < len(s) && (s[i] == '\r' || s[i] == '\n'); {
			i++
		}
		return i
	}
	stop := run(s, i, space)
	for j := stop; j > i; j-- { // \s*[\r\n]+ : up to the last line break
		if s[j-1] == '\r' || s[j-1] == '\n' {
			return j
		}
	}
	return scanSpace(s, i, n)
}

// scanSpace is \s+(?!\S)|\s+ : all space before the end of the text, else all but its last character, which belongs to the word behind; or that one.
func scanSpace(s string, i, first int) int {
	stop := i + first
	for {
		c, n := at(s, stop)
		if c == end {
			return stop
		}
		if c != space {
			break
		}
		stop += n
	}
	_, n := utf8.DecodeLastRuneInString(s[:stop])
	if stop-n > i {
		return stop - n
	}
	return stop
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd behind the apostrophe, 0 where there is none. With fold, capitals and the
// long s (U+017F, which folds to s) count.
func contraction(s string, fold bool) int {
	if s == "" {
		return 0
	}
	lower := func(c byte) byte {
		if fold && 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch a := lower(s[0]); a {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v', 'l':
		if len(s) > 1 {
			if b := lower(s[1]); a != 'l' && b == 'e' || a == 'l' && b == 'l' {
				return 2
			}
		}
	case 0xc5:
		if fold && len(s) > 1 && s[1] == 0xbf {
			return 2
		}
	}
	return 0
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
