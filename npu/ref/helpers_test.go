package ref_test

import (
	"encoding/binary"
	"math"
	"testing"
)

func f32(v ...float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

func getF32(b []byte) []float64 {
	v := make([]float64, len(b)/4)
	for i := range v {
		v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return v
}

func wantF32(t *testing.T, got []byte, want ...float64) {
	t.Helper()
	g := getF32(got)
	if len(g) != len(want) {
		t.Fatalf("%v, want %v", g, want)
	}
	for i := range g {
		if !(math.Abs(g[i]-want[i]) <= 1e-6*max(1, math.Abs(want[i]))) {
			t.Fatalf("%v, want %v", g, want)
		}
	}
}

func f64s(v []float64) []byte {
	b := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	return b
}

func getF64(b []byte) []float64 {
	v := make([]float64, len(b)/8)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

func i32(v ...int32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}
