package text

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// SourceOptions configures how a corpus becomes samples.
type SourceOptions struct {
	Seq int // S, the length of a window
	// Documents adds the field segments, and prevents targets from crossing into the next document.
	Documents bool
	// Pad keeps a last window in which fewer than S tokens have a target, padded with Ignore. An exact evaluation needs it; training may drop it.
	Pad bool
	// Vocab is the model's vocabulary: an id that is not below it is an error. 0: not checked.
	Vocab int
}

// Source is a data.Source of windows over a corpus, one after the other: window i has the tokens i·S … i·S+S-1 and as targets the tokens one further on. So
// every token but the very first is a target exactly once, and the mean loss over all windows is that of the whole text.
//
// Fields: tokens i32[S]; targets i32[S], data.Ignore where there is none; with Documents segments i32[S], the number of the document within the window, from 0:
// attention goes within equal segments only.
type Source struct {
	c      *Corpus
	o      SourceOptions
	n      int
	fields []data.Field
}

// NewSource checks the options. The caller remains responsible for closing the corpus.
func NewSource(c *Corpus, o SourceOptions) (*Source, error) {
	if o.Seq < 1 {
		return nil, fmt.Errorf("text: window length must be at least 1, got %d", o.Seq)
	}
	if o.Documents && !c.info.BOSAdded && !c.info.EOSAdded {
		return nil, fmt.Errorf(
			"text: %s does not mark where documents begin, so they cannot be kept apart\nhint: gotrain tokenize --bos or --eos, in a recipe text.bos or "+
				"text.eos; or text.documents_apart = false",
			c.name,
		)
	}
	if o.Vocab > 0 && c.info.Vocab > 0 { // the greatest id is then known without reading the shards
		if err := c.CheckVocab(o.Vocab); err != nil {
			return nil, err
		}
	}
	targets := max(0, c.n-1)
	n := targets / int64(o.Seq)
	if o.Pad {
		n = (targets + int64(o.Seq) - 1) / int64(o.Seq)
	}
	if n == 0 {
		return nil, fmt.Errorf("text: %s has %d tokens, too few for a window of %d and its targets", c.name, c.n, o.Seq)
	}
	if int64(int(n)) != n {
		return nil, errors.New("text: too many windows")
	}
	s := &Source{c: c, o: o, n: int(n)}
	for _, name := range []string{"tokens", "targets", "segments"} {
		if name != "segments" || o.Documents {
			s.fields = append(s.fields, data.Field{Name: name, Shape: []int{o.Seq}, DType: npu.I32, Target: name == "targets"})
		}
	}
	return s, nil
}

func (s *Source) Name() string         { return "text " + s.c.name }
func (s *Source) Len() int             { return s.n }
func (s *Source) Classes() []string    { return nil }
func (s *Source) Fields() []data.Field { return s.fields }
func (s *Source) Corpus() *Corpus      { return s.c }

// Load copies window i; r is not used.
func (s *Source) Load(_ context.Context, _ *data.Rand, i int, dst [][]byte) error {
	tokens, targets := data.I32(dst[0]), data.I32(dst[1])
	from := int64(i) * int64(s.o.Seq)
	have := int(min(int64(s.o.Seq), s.c.n-from))
	if err := s.c.Read(tokens[:have], from); err != nil {
		return err
	}
	last := [1]int32{data.Ignore}
	if next := from + int64(have); next < s.c.n {
		if err := s.c.Read(last[:], next); err != nil {
			return err
		}
	}
	copy(targets, tokens[1:have])
	targets[have-1] = last[0]
	for j := have; j < s.o.Seq; j++ { // padding
		tokens[j], targets[j] = tokens[have-1], data.Ignore
	}
	if s.o.Vocab > 0 {
		if err := s.check(tokens, last[0], from); err != nil {
			return err
		}
	}
	if s.o.Documents {
		s.divide(tokens, targets, data.I32(dst[2]), have)
	}
	return nil
}

// check rejects ids that the model does not have; they would read out of bounds.
func (s *Source) check(tokens []int32, last int32, from int64) error {
	bad := func(j int, id int32) error {
		return fmt.Errorf("text: %s: id %d, but the model's vocabulary has only %d", s.c.place(from+int64(j)), id, s.o.Vocab)
	}
	for j, id := range tokens {
		if uint32(id) >= uint32(s.o.Vocab) {
			return bad(j, id)
		}
	}
	if last != data.Ignore && uint32(last) >= uint32(s.o.Vocab) {
		return bad(len(tokens), last)
	}
	return nil
}

// divide numbers the documents of a window and removes targets that are the first token of another document. Padding counts as a separate document.
func (s *Source) divide(tokens, targets, segments []int32, have int) {
	seg := int32(0)
	for j := range tokens {
		if j > 0 && (j == have || j < have && s.c.info.begins(tokens[j-1], tokens[j])) {
			seg++
		}
		segments[j] = seg
		if targets[j] != data.Ignore && s.c.info.begins(tokens[j], targets[j]) {
			targets[j] = data.Ignore
		}
	}
}

// Fingerprint hashes what the ids mean, their number, a sample of them, and the options, but not where the shards are.
func (s *Source) Fingerprint() (string, error) {
	c, err := s.c.fingerprint()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, c, s.o.Seq, s.o.Documents, s.o.Pad)
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
