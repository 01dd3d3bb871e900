package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// hfPart is one normalizer, pre-tokenizer or decoder: the fields of all that are known.
type hfPart struct {
	Type        string            `json:"type"`
	Normalizers []json.RawMessage `json:"normalizers"`
	Pre         []json.RawMessage `json:"pretokenizers"`
	Decoders    []json.RawMessage `json:"decoders"`
	Prepend     string            `json:"prepend"`
	Pattern     struct {
		String *string
		Regex  *string
	} `json:"pattern"`
	Content       string `json:"content"`
	Behavior      string `json:"behavior"`
	Invert        bool   `json:"invert"`
	AddPrefix     *bool  `json:"add_prefix_space"`
	UseRegex      *bool  `json:"use_regex"`
	Replacement   string `json:"replacement"`
	PrependScheme string `json:"prepend_scheme"`
	Split         *bool  `json:"split"`
	Start         int    `json:"start"`
	Stop          int    `json:"stop"`
	Individual    bool   `json:"individual_digits"`
}

func hfDecode(raw json.RawMessage) (*hfPart, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	p := &hfPart{}
	return p, json.Unmarshal(raw, p)
}

func isTrue(b *bool, missing bool) bool {
	if b == nil {
		return missing
	}
	return *b
}

func (m *model) hfNormalizer(raw json.RawMessage) error {
	p, err := hfDecode(raw)
	if p == nil || err != nil {
		return err
	}
	switch p.Type {
	case "Sequence":
		for i, q := range p.Normalizers {
			if err := m.hfNormalizer(q); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "Prepend":
		if p.Prepend != "▁" || m.norm.lead != leadNone {
			return fmt.Errorf("prepend of %q is not supported", p.Prepend)
		}
		m.norm.lead, m.norm.marked = leadAlways, true
		return nil
	case "Replace":
		if p.Pattern.String == nil || *p.Pattern.String != " " || p.Content != "▁" {
			return errors.New("only a Replace of a space by U+2581 is supported")
		}
		m.metaspace, m.norm.mark = true, true
		return nil
	}
	return fmt.Errorf("type %q is not supported\nhint: use none, or Prepend and Replace as in Llama 2", p.Type)
}

// hfPre reads the pre-tokenizer. split: words end before each space.
func (m *model) hfPre(raw json.RawMessage) (split bool, err error) {
	p, err := hfDecode(raw)
	if p == nil || err != nil {
		return false, err
	}
	switch p.Type {
	case "Sequence":
		for i, q := range p.Pre {
			s, err := m.hfPre(q)
			if err != nil {
				return false, fmt.Errorf("%d: %w", i, err)
			}
			split = split || s
		}
		return split, nil
	case "Digits":
		if !p.Individual || m.scan != nil || m.bytewise {
			return false, errors.New("a Digits part is supported only as the first part, with individual_digits")
		}
		m.digits = true
		return false, nil
	case "ByteLevel":
		m.bytewise = true
		if m.digits && (isTrue(p.AddPrefix, true) || !isTrue(p.UseRegex, true)) {
			return false, errors.New("a Digits part is supported only before a ByteLevel with use_regex and without add_prefix_space")
		}
		if isTrue(p.AddPrefix, true) {
			if m.scan != nil {
				return false, errors.New("ByteLevel adds a space to each part of a Split, which is not supported")
			}
			m.pre.lead = leadMissing
		}
		if isTrue(p.UseRegex, true) {
			if m.scan != nil {
				return false, errors.New("two regular expressions, one after the other, are not supported")
			}
			if m.scan = scanGPT2; m.digits {
				m.scan = scanDigits
			}
		}
		return false, nil
	case "Split":
		return false, m.hfSplit(p)
	case "Metaspace":
		return m.hfMetaspace(p)
	}
	return false, fmt.Errorf("type %q is not supported\nhint: use none, Split, Digits, ByteLevel, Metaspace or Sequence", p.Type)
}

func (m *model) hfSplit(p *hfPart) error {
	if p.Pattern.Regex == nil {
		return errors.New("a Split without a regular expression is not supported")
	}
	if m.scan != nil || m.bytewise || m.digits {
		return errors.New("two regular expressions, one after the other, are not supported")
	}
	if !(p.Behavior == "Isolated" && !p.Invert || p.Behavior == "Removed" && p.Invert) { // the same, as the expressions match everything
		return fmt.Errorf("a Split with behavior %q, invert %v is not supported", p.Behavior, p.Invert)
	}
	re := *p.Pattern.Regex
	if m.scan = scanners[re]; m.scan == nil || re == PatternGPT2 || re == PatternLlama3 {
		return fmt.Errorf("unknown regular expression %q\nhint: use that of GPT-2, Llama 3 (cl100k_base) or Qwen 2", re)
	}
	return nil
}

func (m *model) hfMetaspace(p *hfPart) (split bool, err error) {
	if p.Replacement != "▁" {
		return false, fmt.Errorf("a Metaspace that replaces spaces by %q is not supported", p.Replacement)
	}
	if m.norm.lead != leadNone || m.pre.lead != leadNone {
		return false, errors.New("using Prepend together with Metaspace is not supported")
	}
	scheme := p.PrependScheme
	if scheme == "" { // older files
		scheme = "never"
		if isTrue(p.AddPrefix, true) {
			scheme = "always"
		}
	}
	switch scheme {
	case "always":
		m.pre.lead = leadMissing
	case "first":
		m.pre.lead = leadFirst
	case "never":
	default:
		return false, fmt.Errorf("prepend_scheme %q is unknown", scheme)
	}
	m.metaspace = true
	return isTrue(p.Split, true), nil
}

// hfDecoder checks that the decoder inverts the encoder, and records whether it strips the first space.
func (m *model) hfDecoder(raw json.RawMessage) error {
	p, err := hfDecode(raw)
	if p == nil || err != nil {
		return err
	}
	switch p.Type {
	case "Sequence":
		for i, q := range p.Decoders {
			if err := m.hfDecoder(q); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	case "ByteLevel", "Fuse":
		return nil
	case "ByteFallback": // such a token is its byte, whether or not the encoder makes any
		for id, t := range m.text {
			if b, ok := byteToken(t); ok && m.roles[id] == rolePlain {
				m.text[id], m.roles[id] = string([]byte{b}), roleByte
			}
		}
		return nil
	case "Replace":
		if p.Pattern.String == nil || *p.Pattern.String != "▁" || p.Content != " " {
			return errors.New("only a Replace of U+2581 by a space is supported")
		}
		return nil
	case "Strip":
		if p.Content != " " || p.Start != 1 || p.Stop != 0 {
			return errors.New("only a Strip of one space at the start is supported")
		}
		m.strip = true
		return nil
	case "Metaspace":
		m.strip = m.strip || p.PrependScheme != "never" && isTrue(p.AddPrefix, true)
		return nil
	}
	return fmt.Errorf("type %q is not supported", p.Type)
}
