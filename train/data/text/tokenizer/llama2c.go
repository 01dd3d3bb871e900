package tokenizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// looksLlama2C: the file begins with the length of its longest token, a small int32.
func looksLlama2C(raw []byte) bool {
	return len(raw) >= 12 && raw[2] == 0 && raw[3] == 0 && binary.LittleEndian.Uint16(raw) > 0
}

// parseLlama2C reads a tok*.bin of llama2.c: int32 longest token, then per token float32 score, int32 length, bytes. Ids 0, 1, 2 are unknown, BOS, EOS;
// 3 to 258 are the bytes.
func parseLlama2C(raw []byte) (*model, error) {
	var texts []string
	var keys []float32
	longest := int(binary.LittleEndian.Uint32(raw))
	for rest := raw[4:]; len(rest) > 0; {
		if len(rest) < 8 {
			return nil, fmt.Errorf("llama2.c tokenizer: truncated in token %d", len(texts))
		}
		score, n := math.Float32frombits(binary.LittleEndian.Uint32(rest)), binary.LittleEndian.Uint32(rest[4:])
		if uint64(n) > uint64(len(rest)-8) || n > maxPiece || int(n) > longest {
			return nil, fmt.Errorf("llama2.c tokenizer: token %d has %d bytes; %d are left, the longest has %d", len(texts), n, len(rest)-8, longest)
		}
		if math.IsNaN(float64(score)) {
			return nil, fmt.Errorf("llama2.c tokenizer: the score of token %d is not a number", len(texts))
		}
		texts, keys = append(texts, string(rest[8:8+n])), append(keys, -score)
		rest = rest[8+n:]
		if len(texts) > maxVocab {
			return nil, errors.New("llama2.c tokenizer: too many tokens")
		}
	}
	if len(texts) < 3+256 {
		return nil, fmt.Errorf("llama2.c tokenizer: only %d tokens; the file must begin with three special tokens and 256 bytes", len(texts))
	}
	m := &model{kind: Llama2C, norm: spaces{lead: leadAlways}, strip: true, byteFallback: true}
	m.setVocab(len(texts))
	m.newRunes()
	lookup := map[string]int32{}
	for i, t := range texts {
		id := int32(i)
		m.text[id], m.roles[id] = t, rolePlain
		if i >= 3 && i < 3+256 {
			b, ok := byteToken(t)
			if !ok || int(b) != i-3 {
				return nil, fmt.Errorf("llama2.c tokenizer: token %d is %q, want byte 0x%02X", i, t, i-3)
			}
			m.byteIDs[b], m.text[id], m.roles[id] = id, string([]byte{b}), roleByte
		}
		if _, ok := lookup[t]; !ok && t != "" {
			lookup[t] = id
			m.setRune(t, id)
		}
	}
	m.setControl(1, "<s>")
	m.setControl(2, "</s>")
	m.bos, m.eos, m.unk, m.roles[0], m.unkText = 1, 2, 0, roleUnknown, " \u2047 "
	m.raw[1] = newMatcher([]fixed{{text: "<s>", id: 1}, {text: "</s>", id: 2}})
	ranks := rankScores(keys)
	for t, id := range lookup {
		if utf8.RuneCountInString(t) < 2 {
			continue
		}
		m.learnJoins(t)
		if err := m.pairs.addSplits(t, id, ranks[id], false, lookup); err != nil {
			return nil, fmt.Errorf("llama2.c tokenizer: %w", err)
		}
	}
	return m, nil
}
