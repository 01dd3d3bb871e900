package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// role of an id.
type role uint8

const (
	roleNone    role = iota // an id that the file leaves out
	rolePlain               // text
	roleByte                // a byte that no token has
	roleControl             // no text: BOS, EOS and the like
	roleUnknown             // replaces text that no token has
)

// model is a byte-pair encoder of any kind. The kinds differ in what a symbol is (a byte or a character), in how text is cut into words,
// and in the order of merges.
type model struct {
	kind     string
	text     []string // of each id, as Decode writes it; of a control token its name
	roles    []role
	bos, eos int32
	unk      int32  // -1: none
	unkText  string // what Decode writes for it

	pairs   pairs
	norm    spaces // done to text between the tokens of raw
	pre     spaces // done to text between the tokens of inner
	strip   bool   // Decode takes one space from the beginning
	cache   *cache
	control map[string]int32

	// Tokens found before and after text is normalised: in Encode, and in EncodeSpecial, which finds more.
	raw, inner [2]*matcher

	// Bytewise: symbols are bytes, words come from scan (nil: all text is one), a word that is a token is that token (whole, may be nil).
	bytewise bool
	bytes    [256]int32
	scan     scanner
	digits   bool // while a tokenizer.json is read: a digit is a word
	whole    map[string]int32

	// Else symbols are characters.
	metaspace    bool // U+2581 in a token is a space
	split        bool // a word ends before each space
	runes        map[rune]int32
	ascii        [128]int32
	byteFallback bool
	byteIDs      [256]int32 // -1: no such token
	fuseUnk      bool
	ghosts       map[int32]string // ids ≥ Vocab of characters that are no token, only part of some
	joins        []bool           // [joinSide²]: two bytes stand side by side in a token; words end where they do not
}

func (m *model) Vocab() int   { return len(m.text) }
func (m *model) BOS() int32   { return m.bos }
func (m *model) EOS() int32   { return m.eos }
func (m *model) Kind() string { return m.kind }

func (m *model) Encode(dst []int32, text string) []int32 { return m.encode(dst, text, 0) }

func (m *model) EncodeSpecial(dst []int32, text string) []int32 { return m.encode(dst, text, 1) }

func (m *model) Special(name string) (int32, bool) {
	id, ok := m.control[name]
	return id, ok
}

// encode finds fixed tokens in the text, normalises what is between them, finds those of normalised text, and encodes the rest word by word.
func (m *model) encode(dst []int32, text string, mode int) []int32 {
	s := scratches.Get().(*scratch)
	defer s.release()
	if m.raw[mode] == nil {
		return m.stretch(dst, s, text, mode, true)
	}
	for f := m.raw[mode].find(text); ; {
		gap, at, token := f.next()
		if gap != "" {
			dst = m.stretch(dst, s, gap, mode, at == 0)
		}
		if token == nil {
			return dst
		}
		dst = append(dst, token.id)
	}
}

func (m *model) stretch(dst []int32, s *scratch, text string, mode int, first bool) []int32 {
	text = m.norm.apply(text, first)
	if m.inner[mode] == nil {
		return m.words(dst, s, m.pre.apply(text, first))
	}
	for f := m.inner[mode].find(text); ; {
		gap, at, token := f.next()
		if gap != "" {
			dst = m.words(dst, s, m.pre.apply(gap, first && at == 0))
		}
		if token == nil {
			return dst
		}
		dst = append(dst, token.id)
	}
}

// words cuts text and encodes each word, or remembers it.
func (m *model) words(dst []int32, s *scratch, text string) []int32 {
	from := len(dst)
	for i := 0; i < len(text); {
		j := len(text)
		if !m.bytewise {
			j = m.join(text, i)
		} else if m.scan != nil {
			j = m.scan(text, i)
		}
		word := text[i:j]
		if m.split && word[0] == ' ' {
			from = len(dst) // unknowns join only within what the file calls a word
		}
		i = j
		slot := m.cache.slot(word)
		if slot != nil {
			if c := slot.Load(); c != nil && c.word == word {
				dst = m.fuse(append(dst, c.ids...), from, len(dst))
				continue
			}
		}
		n := len(dst)
		if m.bytewise {
			dst = m.byteWord(dst, s, word)
		} else {
			dst = m.runeWord(dst, s, word)
		}
		store(slot, word, dst[n:])
		dst = m.fuse(dst, from, n)
	}
	return dst
}

// fuse joins the unknown at the end of one word, ids[:at], with that at the beginning of the next.
func (m *model) fuse(ids []int32, from, at int) []int32 {
	if m.fuseUnk && at > from && len(ids) > at && ids[at] == m.unk && ids[at-1] == m.unk {
		ids = append(ids[:at], ids[at+1:]...)
	}
	return ids
}

func (m *model) byteWord(dst []int32, s *scratch, word string) []int32 {
	if m.whole != nil {
		if id, ok := m.whole[word]; ok {
			return append(dst, id)
		}
	}
	s.ids = s.ids[:0]
	for i := range len(word) {
		s.ids = append(s.ids, m.bytes[word[i]])
	}
	s.merge(&m.pairs)
	return append(dst, s.ids...)
}

// joinSide is the number of classes of bytes in joins: each of ASCII, and one for the rest.
const joinSide = 129

func joinClass(b byte) int { return int(min(b, 128)) }

// join is the end of the word at i: where two bytes meet that no token has side by side, so that no merge can cross.
func (m *model) join(text string, i int) int {
	for i++; i < len(text); i++ {
		if !m.joins[joinClass(text[i-1])*joinSide+joinClass(text[i])] {
			return i
		}
	}
	return i
}

// learnJoins notes the neighbours of a token that merges can make.
func (m *model) learnJoins(piece string) {
	if m.joins == nil {
		m.joins = make([]bool, joinSide*joinSide)
		m.joins[joinSide*joinSide-1] = true // within a character
	}
	for i := 1; i < len(piece); i++ {
		m.joins[joinClass(piece[i-1])*joinSide+joinClass(piece[i])] = true
	}
}

func (m *model) runeWord(dst []int32, s *scratch, word string) []int32 {
	s.ids = s.ids[:0]
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRuneInString(word[i:])
		id := int32(-1)
		switch {
		case r < utf8.RuneSelf:
			id = m.ascii[r]
		case r != utf8.RuneError || n > 1:
			if known, ok := m.runes[r]; ok {
				id = known
			}
		}
		if id >= 0 {
			s.ids = append(s.ids, id)
		} else {
			s.ids = m.unknown(s.ids, 0, word[i:i+n])
		}
		i += n
	}
	s.merge(&m.pairs)
	if m.ghosts == nil {
		return append(dst, s.ids...)
	}
	from := len(dst)
	for _, id := range s.ids {
		if char, ok := m.ghosts[id]; ok {
			dst = m.unknown(dst, from, char)
		} else if id != m.unk || !m.fuseUnk || len(dst) == from || dst[len(dst)-1] != id {
			dst = append(dst, id)
		}
	}
	return dst
}

// unknown appends the ids that replace a character without a token; ids[from:] belong to the same word.
func (m *model) unknown(ids []int32, from int, char string) []int32 {
	if m.byteFallback {
		whole := true
		for i := range len(char) {
			whole = whole && m.byteIDs[char[i]] >= 0
		}
		if whole {
			for i := range len(char) {
				ids = append(ids, m.byteIDs[char[i]])
			}
			return ids
		}
	}
	if m.unk >= 0 && !(m.fuseUnk && len(ids) > from && ids[len(ids)-1] == m.unk) {
		ids = append(ids, m.unk)
	}
	return ids
}

// setRune makes a token the symbol of its character, if it is one.
func (m *model) setRune(piece string, id int32) {
	r, n := utf8.DecodeRuneInString(piece)
	if n != len(piece) || r == utf8.RuneError && n < 2 {
		return
	}
	if r < utf8.RuneSelf {
		m.ascii[r] = id
	} else {
		m.runes[r] = id
	}
}

// newRunes prepares the fields of an encoder of characters.
func (m *model) newRunes() {
	m.runes = map[rune]int32{}
	for i := range m.ascii {
		m.ascii[i] = -1
	}
	for i := range m.byteIDs {
		m.byteIDs[i] = -1
	}
	m.learnJoins("")
}

// setVocab sets the size; ids without a token keep roleNone.
func (m *model) setVocab(n int) {
	m.text, m.roles = make([]string, n), make([]role, n)
	m.bos, m.eos, m.unk = -1, -1, -1
	m.control = map[string]int32{}
	m.cache = newCache()
}

func (m *model) setControl(id int32, name string) {
	m.text[id], m.roles[id] = name, roleControl
	m.control[name] = id
}

// Fingerprint hashes what Decode makes of every id, and which ids are controls.
func (m *model) Fingerprint() string {
	h := sha256.New()
	var head [5]byte
	for id, t := range m.text {
		r := m.roles[id]
		switch r {
		case roleByte:
			r = rolePlain // however the file spells it, the id is that byte
		case roleControl, roleUnknown:
			t = "" // files spell these differently
		}
		head[0] = byte(r)
		binary.LittleEndian.PutUint32(head[1:], uint32(len(t)))
		h.Write(head[:])
		h.Write([]byte(t))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (m *model) Piece(id int32) string {
	if id < 0 || int(id) >= len(m.text) || m.roles[id] == roleNone {
		return fmt.Sprintf("[no token %d]", id)
	}
	t := m.text[id]
	switch {
	case m.roles[id] == roleByte:
		return fmt.Sprintf("<0x%02X>", t[0])
	case m.roles[id] == rolePlain && !utf8.ValidString(t):
		var b strings.Builder
		for i := range len(t) {
			fmt.Fprintf(&b, "<0x%02X>", t[i])
		}
		return b.String()
	case m.roles[id] == rolePlain && !m.bytewise:
		return strings.ReplaceAll(t, " ", "▁")
	}
	return t
}
