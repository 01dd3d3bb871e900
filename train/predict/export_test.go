package predict

import "github.com/gotrain/gotrain/npu/tune"

// WithoutFolding keeps batch normalisations as kernels of their own.
func WithoutFolding() Option { return func(o *options) { o.noFold = true } }

// WithTuner replaces the measurement of algorithms.
func WithTuner(t tune.Tuner) Option { return func(o *options) { o.tuner = t } }

// Kinds counts the kernels of the largest batch by kind, and by algorithm where they have one.
func (m *Model) Kinds() map[string]int {
	n := map[string]int{}
	for _, s := range m.eng.progs[m.eng.sizes[len(m.eng.sizes)-1]].prog.Plan().Steps {
		n[s.Op.Kind]++
		if a := s.Op.Attrs.Str("algorithm"); a != "" {
			n[a]++
		}
	}
	return n
}
