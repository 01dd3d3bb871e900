package data

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// SyntheticTokens is a source of sequences of random tokens with the fields of a text, tokens and targets i32[seq], for benchmarks and plans.
type SyntheticTokens struct {
	n, vocab, seq int
	seed          uint64
}

// NewSyntheticTokens makes n samples of seq tokens below vocab. The target of a token is the one that follows it.
func NewSyntheticTokens(seed uint64, n, vocab, seq int) (*SyntheticTokens, error) {
	if n < 1 || vocab < 1 || seq < 1 {
		return nil, fmt.Errorf("data: synthetic source of %d sequences of %d tokens below %d is empty", n, seq, vocab)
	}
	return &SyntheticTokens{n, vocab, seq, seed}, nil
}

func (s *SyntheticTokens) Name() string      { return "synthetic tokens" }
func (s *SyntheticTokens) Len() int          { return s.n }
func (s *SyntheticTokens) Classes() []string { return nil }

// Fields are tokens and targets.
func (s *SyntheticTokens) Fields() []Field {
	return []Field{{Name: "tokens", Shape: []int{s.seq}, DType: npu.I32}, {Name: "targets", Shape: []int{s.seq}, DType: npu.I32, Target: true}}
}

// Load draws sample i; r is not used.
func (s *SyntheticTokens) Load(_ context.Context, _ *Rand, i int, dst [][]byte) error {
	r := rand.New(rand.NewPCG(s.seed, uint64(i)))
	tokens, targets := I32(dst[0]), I32(dst[1])
	next := r.Int32N(int32(s.vocab))
	for j := range tokens {
		tokens[j] = next
		next = r.Int32N(int32(s.vocab))
		targets[j] = next
	}
	return nil
}

// Fingerprint hashes the parameters.
func (s *SyntheticTokens) Fingerprint() (string, error) {
	h := fnv.New64a()
	fmt.Fprintln(h, "synthetic tokens", s.seed, s.n, s.vocab, s.seq)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
