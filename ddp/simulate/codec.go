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

// work is how a codec reduces buckets on a cluster: between all ranks, or, where several hosts have several ranks each, between hosts only, with a sum inside
// each host before and a gathering after (ddp.OpenCodec).
type work struct {
	Codec
	all   link.Cluster
	on    link.Cluster // between whose ranks the codec works
	each  int          // 1, or the ranks of a host, which have a part of each bucket to themselves
	inner int          // phases inside the host before those of the codec: 0 or 1
}

func workOf(c Codec, cl link.Cluster) work {
	w := work{Codec: c, all: cl, on: cl, each: 1}
	if c.Name != "" && cl.Hosts > 1 && cl.PerHost() > 1 {
		w.on, w.each, w.inner = cl.Between(), cl.PerHost(), 1
	}
	return w
}

func (w work) phases() int { return w.Codec.phases() + 2*w.inner }

// inside reports whether a phase does not use the network between hosts.
func (w work) inside(phase int) bool {
	return w.inner > 0 && (phase == 0 || phase == w.phases()-1)
}

// before is the work on the host before the collective of a phase, for a bucket of n bytes.
func (w work) before(phase int, n int64) time.Duration {
	part := n / int64(w.each)
	switch {
	case w.Name == "" || w.inner > 0 && phase == 0:
		return 0
	case phase == w.inner:
		return at(part, w.Encode)
	case w.inside(phase):
		return at(part, w.Decode)
	}
	return at(part, w.Sum) + at(part/int64(w.on.Ranks), w.Encode)
}

// after is the work after the last one.
func (w work) after(n int64) time.Duration {
	if w.Name == "" || w.inner > 0 {
		return 0
	}
	return at(n, w.Decode)
}

// wire is the time of the collective of a phase. The ranks of a host send their parts over the same card at the same time, which takes as long as one
// rank needs for all of them.
func (w work) wire(phase int, n int64) time.Duration {
	inside := w.all.Inside()
	switch {
	case w.Name == "":
		return w.all.AllReduce(n)
	case w.inside(phase) && phase == 0:
		return inside.Scatter(w.each, n)
	case w.inside(phase):
		return inside.Share(w.each, n)
	case w.two() && phase == w.inner:
		return w.on.AllToAll(w.bytes(n))
	case w.two():
		return w.on.Share(w.bytes(n))
	}
	return w.on.AllReduce(w.bytes(n))
}

// bytes is the size of n bytes of gradients, encoded.
func (c Codec) bytes(n int64) int64 { return int64(math.Ceil(float64(n) * c.Ratio)) }

// at is the time for n bytes at a speed.
func at(n int64, speed float64) time.Duration { return time.Duration(float64(n) / speed * 1e9) }
