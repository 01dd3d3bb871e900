package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/gotrain/gotrain/npu"
)

// Synthetic is a source of noise with the shape of real data, for benchmarks and tests. It computes a few distinct samples once and
// copies them after that, so it costs a memory copy per sample.
type Synthetic struct {
	n       int
	classes int
	seed    uint64
	fields  []Field
	images  [][]byte // distinct samples
}

// distinctSynthetic is large enough that neighbours in a batch differ and small enough to use little memory.
const distinctSynthetic = 32

// NewSynthetic makes n samples of image f32[shape] (normal noise, mean 0, standard deviation 1) and label i32. Equal images have equal labels, so a
// network can learn them.
func NewSynthetic(seed uint64, n, classes int, shape ...int) (*Synthetic, error) {
	f := Field{Name: "image", Shape: shape, DType: npu.F32}
	if n < 1 || classes < 1 || len(shape) == 0 || f.Elems() < 1 {
		return nil, fmt.Errorf("data: synthetic source of %d samples, %d classes, shape %v is empty", n, classes, shape)
	}
	s := &Synthetic{n: n, classes: classes, seed: seed, fields: []Field{f, {Name: "label", DType: npu.I32, Target: true}}}
	for i := range min(n, distinctSynthetic) {
		img := make([]byte, f.Bytes())
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for j, v := 0, F32(img); j < len(v); j++ {
			v[j] = float32(r.NormFloat64())
		}
		s.images = append(s.images, img)
	}
	return s, nil
}

func (s *Synthetic) Name() string      { return "synthetic" }
func (s *Synthetic) Len() int          { return s.n }
func (s *Synthetic) Classes() []string { return nil }
func (s *Synthetic) Fields() []Field   { return s.fields }

// Load copies sample i modulo the number of distinct ones; r is not used.
func (s *Synthetic) Load(_ context.Context, _ *Rand, i int, dst [][]byte) error {
	k := i % len(s.images)
	copy(dst[0], s.images[k])
	binary.NativeEndian.PutUint32(dst[1], uint32(k%s.classes))
	return nil
}

// Fingerprint hashes the parameters.
func (s *Synthetic) Fingerprint() (string, error) {
	h := fnv.New64a()
	fmt.Fprintln(h, "synthetic", s.seed, s.n, s.classes, s.fields)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
