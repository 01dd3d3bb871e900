package augment

import (
	"fmt"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// BenchmarkOps is one operation on a picture of 224 x 224.
func BenchmarkOps(b *testing.B) {
	for _, n := range Names() {
		b.Run(n, func(b *testing.B) {
			p, s := photograph(), &Scratch{}
			op, _ := Lookup(n)
			arg := map[string]float64{"Rotate": 20, "Posterize": 8, "Solarize": 200, "TranslateX": 20, "TranslateY": 20}[n]
			if arg == 0 {
				arg = 0.3
			}
			for b.Loop() {
				op.Apply(p, s, arg, [3]byte{124, 116, 104})
			}
		})
	}
}

func photograph() *Pixels {
	p := &Pixels{}
	p.Reset(224, 224, 3)
	r := data.NewRand(1)
	for i := range p.Pix {
		p.Pix[i] = byte(100 + i%50 + r.IntN(20))
	}
	return p
}

// BenchmarkPipeline is everything that happens to one picture.
func BenchmarkPipeline(b *testing.B) {
	jitter := Jitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1}
	rand, erase := RandAugment{Magnitude: 9, Std: 0.5}, Erase{Prob: 1, Noise: true}
	for _, p := range []Pipeline{{Policy: TrivialAugment{}}, {Policy: rand}, {Jitter: jitter}, {Erase: erase}} {
		b.Run(fmt.Sprint(p), func(b *testing.B) {
			pix, s := photograph(), &Scratch{}
			planes := make([]float32, 3*224*224)
			for n := 0; b.Loop(); n++ {
				r := data.SampleRand(1, 0, n)
				p.Pixels(&r, pix, s)
				p.Values(&r, planes, 3, 224, 224)
			}
		})
	}
}
