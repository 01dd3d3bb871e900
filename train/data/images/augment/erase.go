package augment

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/train/data"
)

// Erase overwrites a random rectangle of a normalised picture (Zhong et al., arXiv 1708.04896), with the rules of timm and torchvision. Zero ranges take
// the usual values: 0.02 to 1/3 of the area, height/width from 0.3 to 1/0.3.
type Erase struct {
	Prob        float64 // of erasing anything; 0: never
	Area, Ratio [2]float64
	Noise       bool // fill with normal noise (timm's mode "pixel", torchvision's "random"); otherwise with 0, the mean colour
}

func (e *Erase) defaults() {
	if e.Area == [2]float64{} {
		e.Area = [2]float64{0.02, 1. / 3}
	}
	if e.Ratio == [2]float64{} {
		e.Ratio = [2]float64{0.3, 1 / 0.3}
	}
}

// Check refuses what is out of range.
func (e Erase) Check() error {
	e.defaults()
	if !(e.Prob >= 0 && e.Prob <= 1) || !(e.Area[0] > 0 && e.Area[0] <= e.Area[1] && e.Area[1] <= 1) || !(e.Ratio[0] > 0 && e.Ratio[0] <= e.Ratio[1]) {
		return fmt.Errorf("augment: invalid random erasing %+v\nhint: a probability from 0 to 1, 0 < area <= 1 and 0 < ratio, the smaller number first", e)
	}
	return nil
}

// box draws the rectangle; ok is false if none is erased.
func (e Erase) box(r *data.Rand, h, w int) (x, y, bw, bh int, ok bool) {
	if e.Prob == 0 || !r.Bool(e.Prob) {
		return
	}
	e.defaults()
	lo, hi := math.Log(e.Ratio[0]), math.Log(e.Ratio[1])
	for range 10 {
		area := float64(h*w) * r.Uniform(e.Area[0], e.Area[1])
		ratio := math.Exp(r.Uniform(lo, hi))
		bh, bw = int(math.RoundToEven(math.Sqrt(area*ratio))), int(math.RoundToEven(math.Sqrt(area/ratio)))
		if bh < h && bw < w {
			return r.IntN(w - bw + 1), r.IntN(h - bh + 1), bw, bh, true
		}
	}
	return 0, 0, 0, 0, false
}

// Apply erases in c planes of h × w values.
func (e Erase) Apply(r *data.Rand, planes []float32, c, h, w int) {
	x, y, bw, bh, ok := e.box(r, h, w)
	if !ok {
		return
	}
	for p := range c {
		for row := y; row < y+bh; row++ {
			out := planes[(p*h+row)*w+x:][:bw]
			if e.Noise {
				noise(r, out)
			} else {
				clear(out)
			}
		}
	}
}

func (e Erase) String() string {
	fill := "0"
	if e.Noise {
		fill = "noise"
	}
	return fmt.Sprintf("random erasing %g with %s", e.Prob, fill)
}
