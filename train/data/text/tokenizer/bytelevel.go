package tokenizer

// byteRunes is GPT-2's spelling of bytes as printable characters: a byte that Latin-1 prints is itself, the others follow from U+0100 on.
var byteRunes, runeBytes = func() (to [256]rune, from map[rune]byte) {
	from = map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r, next = next, next+1
		}
		to[b], from[r] = r, byte(b)
	}
	return to, from
}()

// unspell turns such a spelling into bytes; ok is false where a character is none of these.
func unspell(s string) (string, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		c, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}
