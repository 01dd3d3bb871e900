package tokenizer

import "unicode/utf8"

// Decode is a Stream's work without its care for whole characters.
func (m *model) Decode(dst []byte, ids []int32) []byte {
	begin := true
	for _, id := range ids {
		dst, begin = m.token(dst, id, begin)
	}
	return dst
}

// token appends the text of one id. begin: it is the first of a text, and the next is.
func (m *model) token(dst []byte, id int32, begin bool) ([]byte, bool) {
	if id < 0 || int(id) >= len(m.text) {
		return append(dst, "\uFFFD"...), false
	}
	switch t := m.text[id]; m.roles[id] {
	case roleNone:
		return append(dst, "\uFFFD"...), false
	case roleControl:
		return dst, begin || id == m.bos
	case roleUnknown:
		return append(dst, m.unkText...), false
	default:
		if begin && m.strip && t != "" && t[0] == ' ' {
			t = t[1:]
		}
		return append(dst, t...), false
	}
}

// Stream decodes token by token and gives out whole characters only: of a character whose bytes are spread over tokens nothing, until the
// last of them. Bytes that are no UTF-8 become U+FFFD. The first token, and each one after BOS, loses its leading space; to go on with a
// text, push its tokens first and drop what comes. A Stream is for one goroutine.
type Stream struct {
	t     Tokenizer
	begin bool
	prev  [2]int32 // of a tokenizer that is not ours: the last token, and room for the next
	held  []byte   // an unfinished character
}

// NewStream begins a text.
func NewStream(t Tokenizer) *Stream { return &Stream{t: t, begin: true} }

// Push appends to dst what is certain after the next token.
func (s *Stream) Push(dst []byte, id int32) []byte {
	if m, ok := s.t.(*model); ok {
		s.held, s.begin = m.token(s.held, id, s.begin)
	} else { // another implementation: what the token adds to the one before
		s.prev[1] = id
		if s.begin {
			s.held = s.t.Decode(s.held, s.prev[1:])
		} else {
			both := s.t.Decode(nil, s.prev[:])
			s.held = append(s.held, both[len(s.t.Decode(nil, s.prev[:1])):]...)
		}
		s.begin, s.prev[0] = false, id
	}
	i := 0
	for i < len(s.held) && utf8.FullRune(s.held[i:]) {
		r, n := utf8.DecodeRune(s.held[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	s.held = s.held[:copy(s.held, s.held[i:])]
	return dst
}

// Flush appends what is held, an unfinished character as U+FFFD, and begins a new text.
func (s *Stream) Flush(dst []byte) []byte {
	if len(s.held) > 0 {
		dst = append(dst, "\uFFFD"...)
	}
	s.held, s.begin = s.held[:0], true
	return dst
}
