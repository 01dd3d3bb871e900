package images

import (
	"fmt"
	"math"

	"github.com/gotrain/gotrain/train/data"
)

// Transform chooses the view of a picture that becomes a sample. All randomness comes from r.
type Transform interface {
	// Size is the width and height of the result.
	Size() (w, h int)
	// View returns the part of a picture of w × h pixels to use.
	View(r *data.Rand, w, h int) View
	// Check reports what is wrong with the parameters.
	Check() error
}

// RandomResizedCrop takes a region of random area, shape and place and resizes it: the augmentation of Szegedy et al. (arXiv 1409.4842)
// with torchvision's rules. Zero fields take the usual values: area 0.08 to 1 of the picture, width/height 3/4 to 4/3.
type RandomResizedCrop struct {
	Width, Height int
	Area, Ratio   [2]float64
	Flip          float64 // probability of mirroring left and right
}

// Size is the output's.
func (t RandomResizedCrop) Size() (w, h int) { return t.Width, t.Height }

// Check refuses empty sizes and ranges.
func (t RandomResizedCrop) Check() error {
	t.defaults()
	if t.Area[0] <= 0 || t.Area[1] < t.Area[0] || t.Area[1] > 1 || t.Ratio[0] <= 0 || t.Ratio[1] < t.Ratio[0] {
		return fmt.Errorf("images: invalid random crop of area %v and ratio %v\nhint: use 0 < area ≤ 1 and 0 < ratio, the smaller number first", t.Area, t.Ratio)
	}
	return checkSize(t.Width, t.Height, t.Flip)
}

func (t *RandomResizedCrop) defaults() {
	if t.Area == [2]float64{} {
		t.Area = [2]float64{0.08, 1}
	}
	if t.Ratio == [2]float64{} {
		t.Ratio = [2]float64{3. / 4, 4. / 3}
	}
}

// View draws the region.
func (t RandomResizedCrop) View(r *data.Rand, w, h int) View {
	t.defaults()
	x, y, cw, ch := t.region(r, w, h)
	return View{X: float64(x), Y: float64(y), W: float64(cw), H: float64(ch), OutW: t.Width, OutH: t.Height, Flip: r.Bool(t.Flip)}
}

func (t RandomResizedCrop) region(r *data.Rand, w, h int) (x, y, cw, ch int) {
	lo, hi := math.Log(t.Ratio[0]), math.Log(t.Ratio[1])
	for range 10 {
		area := float64(w) * float64(h) * r.Uniform(t.Area[0], t.Area[1])
		ratio := math.Exp(r.Uniform(lo, hi))
		cw, ch = int(math.RoundToEven(math.Sqrt(area*ratio))), int(math.RoundToEven(math.Sqrt(area/ratio)))
		if cw > 0 && ch > 0 && cw <= w && ch <= h {
			return r.IntN(w - cw + 1), r.IntN(h - ch + 1), cw, ch
		}
	}
	// No random region fits an unusual shape: use the largest allowed region in the centre.
	cw, ch = w, h
	if in := float64(w) / float64(h); in < t.Ratio[0] {
		ch = max(1, int(math.RoundToEven(float64(w)/t.Ratio[0])))
	} else if in > t.Ratio[1] {
		cw = max(1, int(math.RoundToEven(float64(h)*t.Ratio[1])))
	}
	cw, ch = min(cw, w), min(ch, h)
	return (w - cw) / 2, (h - ch) / 2, cw, ch
}

// ResizeCrop resizes the short side to Short, keeping the shape, and cuts out the middle: the usual evaluation. Short 0 does not resize.
// Where the picture is smaller than the output the rest is black.
type ResizeCrop struct{ Short, Width, Height int }

// Size is the output's.
func (t ResizeCrop) Size() (w, h int) { return t.Width, t.Height }

// Check refuses a window larger than what Short leaves.
func (t ResizeCrop) Check() error {
	if t.Short != 0 && t.Short < max(t.Width, t.Height) {
		return fmt.Errorf("images: short side %d is smaller than the crop of %d x %d", t.Short, t.Width, t.Height)
	}
	return checkSize(t.Width, t.Height, 0)
}

// View is the middle.
func (t ResizeCrop) View(_ *data.Rand, w, h int) View {
	rw, rh := w, h
	if t.Short > 0 {
		if w <= h {
			rw, rh = t.Short, int(int64(t.Short)*int64(h)/int64(w))
		} else {
			rw, rh = int(int64(t.Short)*int64(w)/int64(h)), t.Short
		}
	}
	middle := func(n, out int) int { return int(math.RoundToEven(float64(n-out) / 2)) } // Python's round
	return View{W: float64(w), H: float64(h), OutW: rw, OutH: rh, WinX: middle(rw, t.Width), WinY: middle(rh, t.Height), Whole: true}
}

// PadCrop surrounds the picture with Pad black pixels, takes a window at a random place and mirrors it with probability Flip: the
// augmentation for small pictures (He et al., arXiv 1512.03385, section 4.2: 4 pixels, 32 × 32, flip 0.5). Nothing is resized.
type PadCrop struct {
	Width, Height int
	Pad           int
	Flip          float64
}

// Size is the output's.
func (t PadCrop) Size() (w, h int) { return t.Width, t.Height }

// Check refuses negative padding.
func (t PadCrop) Check() error {
	if t.Pad < 0 {
		return fmt.Errorf("images: padding must not be negative, got %d", t.Pad)
	}
	return checkSize(t.Width, t.Height, t.Flip)
}

// View draws the place. A picture that is smaller than the window even with its border sits at a random place in it.
func (t PadCrop) View(r *data.Rand, w, h int) View {
	place := func(n, out int) float64 {
		room := n + 2*t.Pad - out
		at := r.IntN(max(room, -room) + 1)
		if room < 0 {
			at = -at
		}
		return float64(at - t.Pad)
	}
	x, y := place(w, t.Width), place(h, t.Height)
	return View{X: x, Y: y, W: float64(t.Width), H: float64(t.Height), OutW: t.Width, OutH: t.Height, Flip: r.Bool(t.Flip)}
}

func checkSize(w, h int, flip float64) error {
	const limit = 1 << 14
	if w < 1 || h < 1 || w > limit || h > limit {
		return fmt.Errorf("images: invalid output size of %d x %d pixels\nhint: use 1 to %d each", w, h, limit)
	}
	if flip < 0 || flip > 1 || math.IsNaN(flip) {
		return fmt.Errorf("images: flip probability %v is not between 0 and 1", flip)
	}
	return nil
}
