package simulate

import (
	"math"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/link"
)

// Codec is what a codec of gradients costs: the size of what it sends, relative to float32, and the speed of its work on one core, in bytes of float32 a
// second.
type Codec struct {
	Name   string
	Ratio  float64 // encoded bytes to bytes of gradients
	Encode float64
	Sum    float64 // decoding and adding what the others sent; 0: the transport adds
	Decode float64
}

// Codecs are the codecs of package ddp/compress, with speeds of an AVX2 core from memory.
var Codecs = []Codec{
	{Name: "f16", Ratio: 0.5, Encode: 8.8e9, Decode: 7.2e9},
	{Name: "bf16", Ratio: 0.5, Encode: 7.9e9, Decode: 7.2e9},
	{Name: "int8", Ratio: (1 + 4.0/256) / 4, Encode: 5.7e9, Sum: 8.4e9, Decode: 9.5e9}, // blocks of 256 with a scale, error feedback
}

// CodecOf returns a codec by the word of the recipe; the zero Codec for "none" and "".
func CodecOf(name string) (Codec, bool) {
	if name == "" || name == "none" {
		return Codec{}, true
	}
	for _, c := range Codecs {
		if c.Name == name {
			return c, true
		}
	}
	return Codec{}, false
}

// two reports whether the codec adds by itself: it exchanges parts and gathers the sums.
func (c Codec) two() bool { return c.Sum > 0 }

func (c Codec) phases() int {
	if c.two() {
		return 2
	}
	return 1
}

// before is the work on the host before the collective of a phase, for a bucket of n bytes on one of w ranks.
func (c Codec) before(phase int, n int64, w int) time.Duration {
	switch {
	case c.Name == "":
		return 0
	case phase == 0:
		return at(n, c.Encode)
	}
	return at(n, c.Sum) + at(n/int64(w), c.Encode)
}

// after is the work after the last one.
func (c Codec) after(n int64) time.Duration {
	if c.Name == "" {
		return 0
	}
	return at(n, c.Decode)
}

// wire is the time of the collective of a phase.
func (c Codec) wire(cl link.Cluster, phase int, n int64) time.Duration {
	switch {
	case c.Name == "":
		return cl.AllReduce(n)
	case c.two() && phase == 0:
		return cl.AllToAll(c.bytes(n))
	case c.two():
		return cl.Share(c.bytes(n))
	}
	return cl.AllReduce(c.bytes(n))
}

// bytes is the size of n bytes of gradients, encoded.
func (c Codec) bytes(n int64) int64 { return int64(math.Ceil(float64(n) * c.Ratio)) }

// at is the time for n bytes at a speed.
func at(n int64, speed float64) time.Duration { return time.Duration(float64(n) / speed * 1e9) }
