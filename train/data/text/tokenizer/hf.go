package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// hfFile holds the relevant fields of a tokenizer.json (https://huggingface.co/docs/tokenizers).
type hfFile struct {
	Added      []hfAdded       `json:"added_tokens"`
	Normalizer json.RawMessage `json:"normalizer"`
	Pre        json.RawMessage `json:"pre_tokenizer"`
	Post       json.RawMessage `json:"post_processor"`
	Decoder    json.RawMessage `json:"decoder"`
	Model      hfModel         `json:"model"`
}

type hfAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type hfModel struct {
	Type         string           `json:"type"`
	Dropout      *float64         `json:"dropout"`
	Unk          *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	FuseUnk      bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []hfMerge        `json:"merges"`
}

// hfMerge is "a b" in older files and ["a", "b"] in newer ones.
type hfMerge [2]string

// UnmarshalJSON reads both spellings.
func (m *hfMerge) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		if len(list) != 2 {
			return fmt.Errorf("a merge has %d tokens, want 2", len(list))
		}
		*m = hfMerge(list)
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	a, b, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(b, " ") {
		return fmt.Errorf("merge %q: want two tokens with a space between", s)
	}
	*m = hfMerge{a, b}
	return nil
}

func parseHF(raw, config []byte) (*model, error) {
	m, err := buildHF(raw, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return m, nil
}

func buildHF(raw, config []byte) (*model, error) {
	f := &hfFile{}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(raw), "\ufeff")), f); err != nil {
		return nil, err
	}
	if err := f.Model.supported(); err != nil {
		return nil, err
	}
	m := &model{kind: HuggingFace, byteFallback: f.Model.ByteFallback, fuseUnk: f.Model.FuseUnk}
	if err := f.sizes(m); err != nil {
		return nil, err
	}
	if err := m.hfNormalizer(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	split, err := m.hfPre(f.Pre)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if (m.scan != nil || m.digits) && !m.bytewise {
		return nil, errors.New("pre_tokenizer: a Split or Digits without ByteLevel is not supported")
	}
	if m.bytewise && (m.metaspace || m.norm.lead != leadNone) {
		return nil, errors.New("U+2581 for spaces together with ByteLevel is not supported")
	}
	if m.norm.lead != leadNone && !m.metaspace {
		return nil, errors.New("normalizer: a Prepend of U+2581 without a Replace of spaces by U+2581 is not supported")
	}
	m.norm.valid, m.pre.unmark, m.split = !m.bytewise, m.metaspace, split
	if err := m.hfVocab(f); err != nil {
		return nil, err
	}
	if err := m.hfAddedTokens(f.Added, f.Model.Vocab); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if err := m.hfDecoder(f.Decoder); err != nil {
		return nil, fmt.Errorf("decoder: %w", err)
	}
	return m, m.hfEnds(f.Post, config)
}

func (f *hfModel) supported() error {
	empty := func(s *string) bool { return s == nil || *s == "" }
	switch {
	case f.Type != "BPE" && f.Type != "":
		return fmt.Errorf("model type %q; only BPE is supported", f.Type)
	case len(f.Vocab) == 0:
		return errors.New("the model has no vocab")
	case f.Dropout != nil && *f.Dropout != 0:
		return errors.New("the model drops merges at random (dropout), which is not supported")
	case !empty(f.Prefix) || !empty(f.Suffix):
		return errors.New("the model marks parts of words (continuing_subword_prefix, end_of_word_suffix), which is not supported")
	}
	return nil
}

// sizes checks ids and lengths and sets the size of the vocabulary.
func (f *hfFile) sizes(m *model) error {
	top, size := int32(-1), 0
	check := func(text string, id int32) error {
		if id < 0 || id >= maxVocab {
			return fmt.Errorf("token %.60q has id %d", text, id)
		}
		if len(text) > maxPiece {
			return fmt.Errorf("token %d has %d bytes, more than %d", id, len(text), maxPiece)
		}
		if size += len(text); size > maxPieces {
			return errors.New("too many tokens")
		}
		top = max(top, id)
		return nil
	}
	for text, id := range f.Model.Vocab {
		if err := check(text, id); err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
	}
	for _, a := range f.Added {
		if err := check(a.Content, a.ID); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
	}
	if int(top) >= 16*(len(f.Model.Vocab)+len(f.Added))+1<<16 {
		return fmt.Errorf("vocab: the greatest id is %d, but there are only %d tokens", top, len(f.Model.Vocab)+len(f.Added))
	}
	m.setVocab(int(top) + 1)
	return nil
}

// hfVocab places the tokens and the merges.
func (m *model) hfVocab(f *hfFile) error {
	if !m.bytewise {
		m.newRunes()
	}
	special := map[string]bool{} // plain text never encodes to one of these
	for _, a := range f.Added {
		special[a.Content] = a.Special
	}
	lookup := make(map[string]int32, len(f.Model.Vocab))
	for spelt, id := range f.Model.Vocab {
		if m.roles[id] != roleNone {
			return fmt.Errorf("vocab: %q and %q have the same id %d", spelt, m.text[id], id)
		}
		text, ok := spelt, true
		if m.bytewise {
			if text, ok = unspell(spelt); !ok || special[spelt] {
				text = spelt
			}
		} else if m.metaspace {
			text = strings.ReplaceAll(spelt, "▁", " ")
		}
		m.text[id], m.roles[id] = text, rolePlain
		if b, isByte := byteToken(spelt); isByte && m.byteFallback {
			m.byteIDs[b], m.text[id], m.roles[id] = id, string([]byte{b}), roleByte
		}
		if m.bytewise && (!ok || special[spelt]) || m.roles[id] == roleByte {
			continue
		}
		if old, twice := lookup[text]; twice {
			return fmt.Errorf("vocab: ids %d and %d have the same text %q", min(old, id), max(old, id), text)
		}
		lookup[text] = id
		if !m.bytewise && !special[spelt] {
			m.setRune(text, id)
		}
	}
	if err := m.hfSymbols(f, lookup); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	if err := m.hfMerges(f); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	return nil
}

// hfSymbols sets the initial symbols of merging.
func (m *model) hfSymbols(f *hfFile, lookup map[string]int32) error {
	if f.Model.IgnoreMerges && !m.bytewise {
		return errors.New("ignore_merges without ByteLevel is not supported")
	}
	if m.bytewise {
		if f.Model.IgnoreMerges {
			m.whole = lookup
		}
		for b := range 256 {
			id, ok := lookup[string([]byte{byte(b)})]
			if !ok {
				return fmt.Errorf("byte 0x%02X (%q) has no token", b, byteRunes[b])
			}
			m.bytes[b] = id
		}
	}
	if u := f.Model.Unk; u != nil && *u != "" {
		id, ok := f.Model.Vocab[*u]
		if !ok {
			return fmt.Errorf("unk_token %q is missing", *u)
		}
		m.unk, m.roles[id], m.text[id], m.unkText = id, roleUnknown, *u, *u
	}
	return nil
}

func (m *model) hfMerges(f *hfFile) error {
	for rank, pair := range f.Model.Merges {
		var ids [3]int32
		for i, s := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			id, ok := f.Model.Vocab[s]
			if !ok {
				return fmt.Errorf("merge %d (%q, %q): no token %.60q in vocab", rank, pair[0], pair[1], s)
			}
			ids[i] = id
		}
		if err := m.pairs.add(ids[0], ids[1], uint32(rank), ids[2]); err != nil {
			return err
		}
		if !m.bytewise {
			m.learnJoins(m.text[ids[2]])
		}
	}
	if m.split && !m.bytewise {
		for i := range joinSide {
			m.joins[i*joinSide+' '] = false
		}
	}
	return nil
}

// hfAddedTokens sorts added tokens into those found in the original and in the normalised text. If two have the same normalised text, a special one
// wins, else the first (Hugging Face's library takes a random one). In Encode, special ones stay text.
func (m *model) hfAddedTokens(added []hfAdded, vocab map[string]int32) error {
	var raw, inner [2][]fixed
	for _, special := range []bool{true, false} {
		for _, a := range added {
			if a.Special != special {
				continue
			}
			if err := m.hfAddedToken(a, vocab); err != nil {
				return err
			}
			x := fixed{text: a.Content, id: a.ID, word: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip}
			list := &raw
			if a.Normalized {
				list, x.text = &inner, m.norm.apply(a.Content, true)
			}
			list[1] = append(list[1], x)
			x.skip = a.Special
			list[0] = append(list[0], x)
		}
	}
	for mode := range 2 {
		m.raw[mode], m.inner[mode] = newMatcher(raw[mode]), newMatcher(inner[mode])
	}
	if len(inner[1]) == 0 && m.norm.lead != leadNone { // nothing reads the intermediate text: one pass suffices
		m.pre.lead, m.norm.lead, m.norm.mark = m.norm.lead, leadNone, false
	}
	return nil
}

// hfAddedToken gives one its id.
func (m *model) hfAddedToken(a hfAdded, vocab map[string]int32) error {
	id, known := vocab[a.Content]
	switch role := m.roles[a.ID]; {
	case a.Content == "":
		return fmt.Errorf("token %d is empty", a.ID)
	case known && id != a.ID:
		return fmt.Errorf("%q has id %d, but %d in vocab", a.Content, a.ID, id)
	case role == roleControl:
		return fmt.Errorf("%q and %q have the same id %d", m.text[a.ID], a.Content, a.ID)
	case role != roleNone && !known:
		return fmt.Errorf("%q has id %d, which is %q in vocab", a.Content, a.ID, m.text[a.ID])
	case a.Special:
		m.setControl(a.ID, a.Content)
		if role == roleUnknown {
			m.roles[a.ID] = role
		}
	case role == roleNone:
		m.text[a.ID], m.roles[a.ID] = a.Content, rolePlain
		if m.metaspace {
			m.text[a.ID] = strings.ReplaceAll(a.Content, "▁", " ")
		}
	}
	return nil
}

// hfEnds finds BOS and EOS: in tokenizer_config.json, else BOS is what the post-processor puts before a text, else they are found by their usual names.
func (m *model) hfEnds(post json.RawMessage, config []byte) error {
	bos, eos := postBOS(post), ""
	if len(config) > 0 {
		var c struct {
			BOS hfName `json:"bos_token"`
			EOS hfName `json:"eos_token"`
		}
		if err := json.Unmarshal(config, &c); err != nil {
			return fmt.Errorf("tokenizer_config.json: %w", err)
		}
		if c.BOS != "" {
			bos = string(c.BOS)
		}
		eos = string(c.EOS)
	}
	m.bos = m.firstControl(bos, "<s>", "<|begin_of_text|>", "<bos>", "<|endoftext|>")
	m.eos = m.firstControl(eos, "</s>", "<|end_of_text|>", "<eos>", "<|endoftext|>")
	return nil
}

// hfName is a token in tokenizer_config.json: its text, or an object with it; null is none.
type hfName string

// UnmarshalJSON reads both.
func (n *hfName) UnmarshalJSON(raw []byte) error {
	var o struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(raw, &o) == nil {
		*n = hfName(o.Content)
		return nil
	}
	return json.Unmarshal(raw, (*string)(n))
}

func (m *model) firstControl(names ...string) int32 {
	for _, n := range names {
		if id, ok := m.control[n]; ok && n != "" {
			return id
		}
	}
	return -1
}

// postBOS is the special token that a TemplateProcessing begins with.
func postBOS(raw json.RawMessage) string {
	var p struct {
		Processors []json.RawMessage `json:"processors"`
		Single     []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
		} `json:"single"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return ""
	}
	if len(p.Single) > 0 && p.Single[0].Special != nil && utf8.ValidString(p.Single[0].Special.ID) {
		return p.Single[0].Special.ID
	}
	for _, q := range p.Processors {
		if id := postBOS(q); id != "" {
			return id
		}
	}
	return ""
}
