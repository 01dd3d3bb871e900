package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Types of SentencePiece's pieces (sentencepiece_model.proto).
const (
	spNormal  = 1
	spUnknown = 2
	spControl = 3
	spUser    = 4
	spUnused  = 5
	spByte    = 6
)

type spPiece struct {
	text  string
	score float32
	kind  uint64
}

// spModel holds the relevant fields of a ModelProto; the rest is about training.
type spModel struct {
	pieces                      []spPiece
	modelType                   uint64
	byteFallback, suffix        bool
	unkSurface, bos, eos        string
	charsmap                    int
	addPrefix, tidy, escapeSpan bool
}

func parseSentencePiece(raw []byte) (*model, error) {
	sp := &spModel{modelType: 1, unkSurface: " \u2047 ", bos: "<s>", eos: "</s>", addPrefix: true, tidy: true, escapeSpan: true}
	size := 0
	err := message(raw).each(func(f pbField) error {
		switch f.num {
		case 1:
			p, err := f.spPiece()
			if size += len(p.text); err == nil && (len(sp.pieces) >= maxVocab || size > maxPieces) {
				err = errors.New("too many pieces")
			}
			sp.pieces = append(sp.pieces, p)
			if err != nil {
				return fmt.Errorf("piece %d: %w", len(sp.pieces)-1, err)
			}
		case 2:
			return sp.trainer(f)
		case 3:
			return sp.normalizer(f)
		}
		return nil
	})
	if err == nil {
		err = sp.supported()
	}
	if err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	m, err := sp.model()
	if err != nil {
		return nil, fmt.Errorf("SentencePiece model: %w", err)
	}
	return m, nil
}

func (f pbField) spPiece() (p spPiece, err error) {
	p.kind = spNormal
	if err := f.expect(2); err != nil {
		return p, err
	}
	err = message(f.bytes).each(func(f pbField) error {
		switch f.num {
		case 1:
			return f.string(&p.text)
		case 2:
			return f.float(&p.score)
		case 3:
			p.kind = f.uint
			return f.expect(0)
		}
		return nil
	})
	switch {
	case err != nil:
	case p.text == "":
		err = errors.New("the piece is empty")
	case len(p.text) > maxPiece:
		err = fmt.Errorf("the piece has %d bytes, more than %d", len(p.text), maxPiece)
	case !utf8.ValidString(p.text):
		err = fmt.Errorf("%q is not UTF-8", p.text)
	case math.IsNaN(float64(p.score)):
		err = fmt.Errorf("the score of %q is not a number", p.text)
	}
	return p, err
}

func (sp *spModel) trainer(f pbField) error {
	if err := f.expect(2); err != nil {
		return err
	}
	return message(f.bytes).each(func(f pbField) error {
		switch f.num {
		case 3:
			sp.modelType = f.uint
			return f.expect(0)
		case 24:
			return f.bool(&sp.suffix)
		case 35:
			return f.bool(&sp.byteFallback)
		case 44:
			return f.string(&sp.unkSurface)
		case 46:
			return f.string(&sp.bos)
		case 47:
			return f.string(&sp.eos)
		}
		return nil
	})
}

func (sp *spModel) normalizer(f pbField) error {
	if err := f.expect(2); err != nil {
		return err
	}
	return message(f.bytes).each(func(f pbField) error {
		switch f.num {
		case 2:
			sp.charsmap = len(f.bytes)
			return f.expect(2)
		case 3:
			return f.bool(&sp.addPrefix)
		case 4:
			return f.bool(&sp.tidy)
		case 5:
			return f.bool(&sp.escapeSpan)
		}
		return nil
	})
}

func (sp *spModel) supported() error {
	if sp.modelType != 2 {
		names := map[uint64]string{1: "unigram", 3: "word", 4: "char"}
		return fmt.Errorf("this is a %s model; only BPE is supported\nhint: train it with --model_type=bpe", cmpOr(names[sp.modelType], "unknown kind of"))
	}
	switch {
	case len(sp.pieces) == 0:
		return errors.New("the model has no pieces")
	case sp.charsmap > 0:
		return errors.New("the model normalises characters with a precompiled map, which is not supported\nhint: train it with --normalization_rule_name=identity")
	case sp.suffix:
		return errors.New("the model treats white space as a suffix, which is not supported")
	case !sp.escapeSpan:
		return errors.New("the model does not escape white space, which is not supported")
	}
	for i, p := range sp.pieces {
		switch p.kind {
		case spUnused:
			return fmt.Errorf("piece %d (%q) is marked unused, which is not supported", i, p.text)
		case spNormal, spUnknown, spControl, spUser, spByte:
		default:
			return fmt.Errorf("piece %d (%q) has type %d", i, p.text, p.kind)
		}
	}
	return nil
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (sp *spModel) model() (*model, error) {
	m := &model{
		kind:         SentencePiece,
		metaspace:    true,
		norm:         spaces{valid: true, tidy: sp.tidy, unmark: true},
		byteFallback: sp.byteFallback,
		fuseUnk:      true,
		unkText:      sp.unkSurface,
		strip:        sp.addPrefix,
	}
	if sp.addPrefix {
		m.norm.lead = leadAlways
	}
	m.setVocab(len(sp.pieces))
	m.newRunes()
	seen, lookup := map[string]bool{}, map[string]int32{}
	var special, user []fixed
	for i, p := range sp.pieces {
		id := int32(i)
		if seen[p.text] {
			return nil, fmt.Errorf("piece %d (%q) is a duplicate", i, p.text)
		}
		seen[p.text] = true
		text := strings.ReplaceAll(p.text, "▁", " ")
		m.text[id], m.roles[id] = text, rolePlain
		switch p.kind {
		case spControl:
			m.setControl(id, p.text)
			special = append(special, fixed{text: p.text, id: id})
		case spUnknown:
			if m.unk >= 0 {
				return nil, fmt.Errorf("pieces %d and %d are both the unknown piece", m.unk, i)
			}
			m.unk, m.roles[id], m.text[id] = id, roleUnknown, p.text
		case spByte:
			b, ok := byteToken(p.text)
			if !ok {
				return nil, fmt.Errorf("piece %d (%q) is not a byte", i, p.text)
			}
			m.byteIDs[b], m.text[id], m.roles[id] = id, string([]byte{b}), roleByte
		case spUser:
			user = append(user, fixed{text: text, id: id})
			fallthrough
		default:
			if _, ok := lookup[text]; ok {
				return nil, fmt.Errorf("piece %d (%q) is a duplicate of one written with spaces", i, p.text)
			}
			lookup[text] = id
			m.setRune(text, id)
		}
	}
	if m.unk < 0 {
		return nil, errors.New("the model has no unknown piece")
	}
	m.bos, m.eos = m.controlID(sp.bos), m.controlID(sp.eos)
	m.inner = [2]*matcher{newMatcher(user), newMatcher(user)}
	m.raw[1] = newMatcher(special)
	return m, m.scorePairs(lookup, sp)
}

func (m *model) controlID(name string) int32 {
	if id, ok := m.control[name]; ok {
		return id
	}
	return -1
}

// scorePairs makes ranks of scores: the highest merges first, equal ones have equal ranks.
func (m *model) scorePairs(lookup map[string]int32, sp *spModel) error {
	scores := make([]float32, 0, len(sp.pieces))
	for _, p := range sp.pieces {
		scores = append(scores, -p.score)
	}
	ranks := rankScores(scores)
	m.addGhosts(lookup)
	for text, id := range lookup {
		if int(id) >= len(m.text) || utf8.RuneCountInString(text) < 2 {
			continue
		}
		m.learnJoins(text)
		if err := m.pairs.addSplits(text, id, ranks[id], false, lookup); err != nil {
			return err
		}
	}
	return nil
}

// rankScores is the place of each number among the distinct ones, the least first.
func rankScores(keys []float32) []uint32 {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	out := make([]uint32, len(keys))
	for i, k := range keys {
		at, _ := slices.BinarySearch(sorted, k)
		out[i] = uint32(at)
	}
	return out
}

// addGhosts gives ids behind the vocabulary to characters that are part of a piece without being one, for SentencePiece merges text and not ids.
func (m *model) addGhosts(lookup map[string]int32) {
	next := int32(len(m.text))
	chars := map[string]bool{}
	for text := range lookup {
		for _, r := range text {
			chars[string(r)] = true
		}
	}
	for c := range chars {
		if _, ok := lookup[c]; ok {
			continue
		}
		if m.ghosts == nil {
			m.ghosts = map[int32]string{}
		}
		m.ghosts[next], lookup[c] = c, next
		m.setRune(c, next)
		next++
	}
}

// byteToken reads "<0x0A>".
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	hi, lo := hexDigit(s[3]), hexDigit(s[4])
	return byte(hi<<4 | lo), hi >= 0 && lo >= 0
}

func hexDigit(c byte) int { return strings.IndexByte("0123456789ABCDEF", c&^(c&0x40>>1)) }
