package tokenizer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// RankOptions supplies what a rank file does not contain.
type RankOptions struct {
	// Pattern splits text into words: PatternGPT2, PatternLlama3, or a regular expression that this package knows. Empty: the usual pattern for a file
	// with that number of ranks.
	Pattern string
	// Special are the special tokens by name; nil with an empty Pattern: the usual ones.
	Special  map[string]int32
	BOS, EOS string // names in Special; empty: none
}

// usual are the well-known rank files by their number of ranks, with one late token that tells them from a chance.
var usual = map[int]struct {
	name string
	late string
	opt  func() RankOptions
}{
	50256: {"r50k_base", " gazed", func() RankOptions {
		return RankOptions{PatternGPT2, map[string]int32{"<|endoftext|>": 50256}, "<|endoftext|>", "<|endoftext|>"}
	}},
	100256: {"cl100k_base", " Conveyor", func() RankOptions {
		return RankOptions{PatternLlama3, map[string]int32{"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260,
			"<|endofprompt|>": 100276}, "<|endoftext|>", "<|endoftext|>"}
	}},
	128000: {"Llama 3", " Conveyor", llama3Options},
}

func llama3Options() RankOptions {
	names := []string{"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
		"<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>"}
	special := map[string]int32{}
	for i := range 256 {
		name := fmt.Sprintf("<|reserved_special_token_%d|>", i-len(names)+3)
		if i < len(names) {
			name = names[i]
		}
		special[name] = int32(128000 + i)
	}
	return RankOptions{PatternLlama3, special, names[0], names[1]}
}

// looksRanks: the first line is base64, a space and a number.
func looksRanks(raw []byte) bool {
	line, _, _ := bytes.Cut(raw[:min(len(raw), 4096)], []byte("\n"))
	_, _, err := rankLine(bytes.TrimRight(line, "\r"))
	return err == nil
}

func rankLine(line []byte) (text string, rank int, err error) {
	code, number, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return "", 0, errors.New("want a base64 token, a space and its rank")
	}
	if rank, err = strconv.Atoi(string(number)); err != nil || rank < 0 || rank >= maxVocab {
		return "", 0, fmt.Errorf("invalid rank %q", number)
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(code)))
	n, err := base64.StdEncoding.Strict().Decode(b, code)
	if err != nil {
		return "", 0, err
	}
	if n == 0 || n > maxPiece {
		return "", 0, fmt.Errorf("token of %d bytes", n)
	}
	return string(b[:n]), rank, nil
}

// OpenRanks reads a rank file as tiktoken has it, whatever its size: a token in base64, a space and its rank per line.
func OpenRanks(path string, o RankOptions) (Tokenizer, error) {
	raw, err := readLimited(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	m, err := parseRanks(raw, o)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	return m, nil
}

// ParseRanks is OpenRanks for a file that is in memory.
func ParseRanks(raw []byte, o RankOptions) (Tokenizer, error) {
	m, err := parseRanks(raw, o)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return m, nil
}

func parseRanks(raw []byte, o RankOptions) (*model, error) {
	lookup := map[string]int32{}
	top, size, line := -1, 0, 0
	for l := range bytes.Lines(raw) {
		line++
		if l = bytes.TrimRight(l, "\r\n"); len(l) == 0 {
			continue
		}
		text, rank, err := rankLine(l)
		if err != nil {
			return nil, fmt.Errorf("rank file: line %d: %w", line, err)
		}
		if _, ok := lookup[text]; ok {
			return nil, fmt.Errorf("rank file: line %d: duplicate token %q", line, text)
		}
		lookup[text] = int32(rank)
		top, size = max(top, rank), size+len(text)
		if size > maxPieces {
			return nil, errors.New("rank file: too many tokens")
		}
	}
	o, err := o.fill(lookup)
	if err != nil {
		return nil, fmt.Errorf("rank file: %w", err)
	}
	for name, id := range o.Special {
		if name == "" || id < 0 || id >= maxVocab {
			return nil, fmt.Errorf("rank file: special token %q has id %d", name, id)
		}
		top = max(top, int(id))
	}
	m := &model{kind: Tiktoken, bytewise: true, scan: scanners[o.Pattern], whole: lookup}
	m.setVocab(top + 1)
	if err := m.addRanks(lookup); err != nil {
		return nil, fmt.Errorf("rank file: %w", err)
	}
	if err := m.addSpecial(o); err != nil {
		return nil, fmt.Errorf("rank file: %w", err)
	}
	return m, nil
}

func (o RankOptions) fill(lookup map[string]int32) (RankOptions, error) {
	if o.Pattern == "" {
		u, ok := usual[len(lookup)]
		if ok {
			_, ok = lookup[u.late]
		}
		if !ok {
			return o, fmt.Errorf("%d ranks match no known vocabulary, and the file does not specify how text is split into words\n"+
				"hint: use r50k_base, cl100k_base or Llama 3; in Go, pass the pattern of any other to OpenRanks", len(lookup))
		}
		known := u.opt()
		if o.Special == nil {
			return known, nil
		}
		o.Pattern = known.Pattern
	}
	if scanners[o.Pattern] == nil {
		return o, fmt.Errorf("unknown pattern %q", o.Pattern)
	}
	return o, nil
}

func (m *model) addRanks(lookup map[string]int32) error {
	for text, id := range lookup {
		if m.roles[id] != roleNone {
			return fmt.Errorf("%q and %q have the same rank %d", text, m.text[id], id)
		}
		m.text[id], m.roles[id] = text, rolePlain
	}
	for b := range 256 {
		id, ok := lookup[string([]byte{byte(b)})]
		if !ok {
			return fmt.Errorf("byte 0x%02X has no token", b)
		}
		m.bytes[b] = id
	}
	for text, id := range lookup {
		if err := m.pairs.addSplits(text, id, uint32(id), true, lookup); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) addSpecial(o RankOptions) error {
	var list []fixed
	for _, name := range slices.Sorted(maps.Keys(o.Special)) {
		id := o.Special[name]
		if m.roles[id] != roleNone {
			return fmt.Errorf("special token %q has the id of %q", name, m.text[id])
		}
		m.setControl(id, name)
		list = append(list, fixed{text: name, id: id})
	}
	m.raw[1] = newMatcher(list)
	for _, x := range []struct {
		name string
		id   *int32
	}{{o.BOS, &m.bos}, {o.EOS, &m.eos}} {
		if x.name == "" {
			continue
		}
		if *x.id = m.controlID(x.name); *x.id < 0 {
			return fmt.Errorf("%q is not among the special tokens", x.name)
		}
	}
	return nil
}
