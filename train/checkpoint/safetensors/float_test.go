package safetensors

import (
	"math"
	"testing"
)

// Every 16-bit pattern survives a round trip (a NaN as a NaN), and a float32 is rounded to nearest even.
func TestHalvesRoundTrip(t *testing.T) {
	for _, dt := range []DType{BF16, F16} {
		for h := range 1 << 16 {
			var v [1]float32
			must(t, DecodeFloat32s(v[:], []byte{byte(h), byte(h >> 8)}, dt))
			raw, err := AppendFloat32s(nil, v[:], dt)
			must(t, err)
			if back := int(raw[0]) | int(raw[1])<<8; back != h && v[0] == v[0] {
				t.Fatalf("%s %04x is %g, comes back as %04x", dt, h, v[0], back)
			} else if v[0] != v[0] && back&0x7c00 != 0x7c00 {
				t.Fatalf("%s NaN %04x comes back as %04x", dt, h, back)
			}
		}
	}
}

func TestHalvesRound(t *testing.T) {
	next := func(v float32, to float64) float32 { return math.Nextafter32(v, float32(to)) }
	for _, c := range []struct {
		dt   DType
		v    float32
		want uint16
	}{
		{F16, 1 + 1.0/2048, 0x3c00}, {F16, 1 + 3.0/2048, 0x3c02}, {F16, next(1+1.0/2048, 2), 0x3c01}, {F16, 65519, 0x7bff}, {F16, -65519, 0xfbff},
		{F16, 1.0 / (1 << 25), 0}, {F16, next(1.0/(1<<25), 1), 1}, {F16, 3.0 / (1 << 25), 2}, {F16, next(1.0/(1<<14), 0), 0x0400}, {F16, float32(math.Inf(-1)), 0xfc00},
		{BF16, 1 + 1.0/256, 0x3f80}, {BF16, 1 + 3.0/256, 0x3f82}, {BF16, next(1+1.0/256, 2), 0x3f81}, {BF16, float32(math.Inf(1)), 0x7f80},
	} {
		raw, err := AppendFloat32s(nil, []float32{c.v}, c.dt)
		must(t, err)
		if got := uint16(raw[0]) | uint16(raw[1])<<8; got != c.want {
			t.Errorf("%g as %s: %04x, want %04x", c.v, c.dt, got, c.want)
		}
	}
	for dt, v := range map[DType]float32{F16: 65520, BF16: math.MaxFloat32, I8: 1} {
		if _, err := AppendFloat32s(nil, []float32{v}, dt); err == nil {
			t.Errorf("%g as %s: no error", v, dt)
		}
	}
}
