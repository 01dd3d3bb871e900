package augment

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// Mix makes two samples mixtures of each other. With mixup (arXiv 1710.09412) every pixel is λ of one and 1-λ of the other; with cutmix (arXiv 1905.04899) a
// rectangle of 1-λ of the area comes from the other. λ has a beta distribution. The rules are timm's in its mode "pair", with λ corrected where the rectangle
// is cut off by the border.
type Mix struct {
	Mixup, Cutmix float64 // both shapes of the beta distribution; 0: never
	Prob          float64 // of mixing a pair at all; 0 means 1
	Switch        float64 // of cutmix, where both are possible; 0 means 0.5
	Classes       int
	Smoothing     float64 // part of a target that is spread evenly over all classes
}

// Check refuses what is out of range.
func (m Mix) Check() error {
	in := func(v, hi float64) bool { return v >= 0 && v <= hi }
	if m.Classes < 1 || !in(m.Mixup, 100) || !in(m.Cutmix, 100) || !in(m.Prob, 1) || !in(m.Switch, 1) || !(m.Smoothing >= 0 && m.Smoothing < 1) {
		return fmt.Errorf("augment: invalid mixing %+v\nhint: at least one class, shapes from 0 to 100, probabilities from 0 to 1, smoothing below 1", m)
	}
	return nil
}

// Active reports whether pairs are ever mixed.
func (m Mix) Active() bool { return m.Mixup > 0 || m.Cutmix > 0 }

func (m Mix) String() string {
	s := ""
	if m.Mixup > 0 {
		s = fmt.Sprintf("mixup %g", m.Mixup)
	}
	if m.Cutmix > 0 {
		if s != "" {
			s += " or "
		}
		s += fmt.Sprintf("cutmix %g", m.Cutmix)
	}
	if m.Prob > 0 && m.Prob < 1 {
		s += fmt.Sprintf(" with probability %g", m.Prob)
	}
	return s
}

// draw chooses λ and between mixup and cutmix. λ is 1 where nothing is mixed.
func (m Mix) draw(r *data.Rand) (lam float64, cut bool) {
	prob, sw := m.Prob, m.Switch
	if prob == 0 {
		prob = 1
	}
	if sw == 0 {
		sw = 0.5
	}
	if !m.Active() || prob < 1 && !r.Bool(prob) {
		return 1, false
	}
	cut = m.Cutmix > 0 && (m.Mixup == 0 || r.Bool(sw))
	if cut {
		return beta(r, m.Cutmix), true
	}
	return beta(r, m.Mixup), false
}

// box draws the rectangle of cutmix: half-open ranges.
func box(r *data.Rand, lam float64, h, w int) (x0, x1, y0, y1 int) {
	side := math.Sqrt(1 - lam)
	ch, cw := int(float64(h)*side), int(float64(w)*side)
	cy, cx := r.IntN(h), r.IntN(w)
	return clamp(cx-cw/2, 0, w), clamp(cx+(cw+1)/2, 0, w), clamp(cy-ch/2, 0, h), clamp(cy+(ch+1)/2, 0, h)
}

// Pictures mixes two pictures of c planes of h × w values and returns λ, the part of each that is its own.
func (m Mix) Pictures(r *data.Rand, a, b []float32, c, h, w int) float64 {
	lam, cut := m.draw(r)
	switch {
	case lam == 1:
	case cut:
		x0, x1, y0, y1 := box(r, lam, h, w)
		for p := range c {
			for y := y0; y < y1; y++ {
				at := (p*h + y) * w
				swap(a[at+x0:at+x1], b[at+x0:at+x1])
			}
		}
		lam = 1 - float64((y1-y0)*(x1-x0))/float64(h*w)
	default:
		mixup(a, b, float32(lam), float32(1-lam))
	}
	return lam
}

func swap(a, b []float32) {
	for i, v := range a {
		a[i], b[i] = b[i], v
	}
}

func mixup(a, b []float32, own, other float32) {
	b = b[:len(a)]
	for i, x := range a {
		y := b[i]
		a[i] = float32(x*own) + float32(y*other) // rounded before they are added, on every processor
		b[i] = float32(y*own) + float32(x*other)
	}
}

// Target writes the probabilities of the classes: λ for one label and 1-λ for the other, smoothed.
func (m Mix) Target(dst []float32, own, other int32, lam float64) {
	off := m.Smoothing / float64(m.Classes)
	for i := range dst {
		dst[i] = float32(off)
	}
	on := 1 - m.Smoothing
	dst[own] = float32(off + float64(on*lam))
	if other == own {
		dst[own] = float32(off + on)
		return
	}
	dst[other] = float32(off + float64(on*(1-lam)))
}

// TargetField is the name of the field with the probabilities of the classes.
const TargetField = "target"

// Mixed is a source of mixed samples. Fields: those of the pictures (image f32[C H W], label i32) and target, f32[Classes]. The label is the one of which
// there is more, for metrics; the loss needs the target.
type Mixed struct {
	data.Source
	mix     Mix
	fields  []data.Field
	c, h, w int
}

// NewMixed mixes the samples of a source of pictures: fields f32[C H W] and i32[], in this order.
func NewMixed(src data.Source, m Mix) (*Mixed, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	f := src.Fields()
	if len(f) != 2 || f[0].DType != npu.F32 || len(f[0].Shape) != 3 || f[1].DType != npu.I32 || f[1].Elems() != 1 {
		return nil, fmt.Errorf("augment: %s has the fields %v; mixing needs pictures f32[C H W] and labels i32[]", src.Name(), f)
	}
	s := &Mixed{Source: src, mix: m, c: f[0].Shape[0], h: f[0].Shape[1], w: f[0].Shape[2]}
	s.fields = append(append(s.fields, f...), data.Field{Name: TargetField, Shape: []int{m.Classes}, DType: npu.F32, Target: true})
	return s, nil
}

// Fields are those of the pictures, and target.
func (s *Mixed) Fields() []data.Field { return s.fields }

// Load loads a sample that is not mixed yet.
func (s *Mixed) Load(ctx context.Context, r *data.Rand, i int, dst [][]byte) error {
	if err := s.Source.Load(ctx, r, i, dst[:2]); err != nil {
		return err
	}
	label := data.I32(dst[1])[0]
	if label < 0 || int(label) >= s.mix.Classes {
		return fmt.Errorf("label %d is not below the %d classes", label, s.mix.Classes)
	}
	s.mix.Target(data.F32(dst[2]), label, label, 1)
	return nil
}

// Pair mixes two samples.
func (s *Mixed) Pair(r *data.Rand, a, b [][]byte) {
	la, lb := &data.I32(a[1])[0], &data.I32(b[1])[0]
	lam := s.mix.Pictures(r, data.F32(a[0]), data.F32(b[0]), s.c, s.h, s.w)
	s.mix.Target(data.F32(a[2]), *la, *lb, lam)
	s.mix.Target(data.F32(b[2]), *lb, *la, lam)
	if lam < 0.5 {
		*la, *lb = *lb, *la
	}
}

// Path names sample i where the source does.
func (s *Mixed) Path(i int) string {
	if p, ok := s.Source.(interface{ Path(int) string }); ok {
		return p.Path(i)
	}
	return fmt.Sprintf("sample %d of %s", i, s.Name())
}

// Unwrap returns the source of the pictures.
func (s *Mixed) Unwrap() data.Source { return s.Source }

// Preparation is that of the source, where it knows it: evaluations and predictions are not mixed.
func (s *Mixed) Preparation() json.RawMessage {
	if p, ok := s.Source.(data.Preparing); ok {
		return p.Preparation()
	}
	return nil
}

// Stages are those of the source, where it knows them.
func (s *Mixed) Stages() []data.Stage {
	if x, ok := s.Source.(data.Staged); ok {
		return x.Stages()
	}
	return nil
}

// Fingerprint is that of the source, with the parameters of mixing.
func (s *Mixed) Fingerprint() (string, error) {
	f, err := s.Source.Fingerprint()
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %+v", f, s.mix)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}
