package llamafile

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"github.com/gotrain/gotrain/train/checkpoint/safetensors"
)

// Version 2 of llama2.c's format keeps matrices as groups of int8, value = scale · int8. Norms stay float32.

func (h binFile) quantised(r run) bool {
	return h.version == 2 && !strings.HasSuffix(r.name, "norm.weight")
}

// dequantise reads values from a position on.
func (t tensor) dequantise(dst []float32, at int) {
	for i := range dst {
		s := math.Float32frombits(binary.LittleEndian.Uint32(t.scales[(at+i)/t.group*4:]))
		dst[i] = s * float32(int8(t.raw[at+i]))
	}
}

// placeQuantised locates the int8 values and the scales. Writers differ: runq.c expects the scales of a tensor after its int8 values, another
// revision of export.py wrote all int8 values first and all scales last. The sizes are the same, so the scales themselves decide: int8 values read as
// scales would not all be plausible.
func (m *model) placeQuantised(h binFile, raw []byte, list []run) error {
	together, apart := m.layout(h, raw, list, false), m.layout(h, raw, list, true)
	a, b := plausible(together), plausible(apart)
	switch {
	case a && !b:
		m.tensors = together
	case b && !a:
		m.tensors = apart
	case a:
		return errors.New("two placements of the scales are plausible: the file cannot be read safely\nhint: export version 0 or 1")
	default:
		return errors.New("no known placement of the int8 scales is plausible: the file is damaged")
	}
	return nil
}

// layout assigns every tensor its bytes, with the scales after each tensor or all at the end.
func (m *model) layout(h binFile, raw []byte, list []run, apart bool) map[string]tensor {
	out := map[string]tensor{}
	at, scales := h.start, len(raw)
	for _, r := range list {
		if h.quantised(r) {
			scales -= 4 * (r.count / h.group)
		}
	}
	take := func(at *int, n int) []byte { b := raw[*at : *at+n : *at+n]; *at += n; return b }
	for _, r := range list {
		t := tensor{shape: r.shape, dtype: safetensors.F32}
		if h.quantised(r) {
			t.dtype, t.group = safetensors.I8, h.group
			t.raw = take(&at, r.count)
			from := &at
			if apart {
				from = &scales
			}
			t.scales = take(from, 4*(r.count/h.group))
		} else {
			t.raw = take(&at, 4*r.count)
		}
		out[r.name] = m.inFile(r, t)
	}
	return out
}

// plausible reports whether all scales could be those of weights: not negative, finite, below 100 (times 127), and not denormal.
func plausible(tensors map[string]tensor) bool {
	for _, t := range tensors {
		for i := 0; i+4 <= len(t.scales); i += 4 {
			s := math.Float32frombits(binary.LittleEndian.Uint32(t.scales[i:]))
			if !(s == 0 && binary.LittleEndian.Uint32(t.scales[i:]) == 0 || s > 1e-20 && s < 100) {
				return false
			}
		}
	}
	return true
}
