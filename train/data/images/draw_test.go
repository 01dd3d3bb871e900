package images

import (
	"math"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// Vector instructions give the bits of the loops in Go, whatever the sizes, for regions, mirrored, and for levels that are not linear.
func TestDrawFastEqualsPlain(t *testing.T) {
	colour := chelsea(t)
	grey := toGray(colour)
	grey.Pix = slices.Grow(grey.Pix, slack)
	steps := newLevels(0.3, 0.2)
	steps.linear = false
	steps.at[7] = 1000
	for _, l := range [][]*levels{planes(ImageNet, 3), {steps, newLevels(0.1, 0.7), steps}} {
		r := data.NewRand(3)
		for n := range 200 {
			src, lut := colour, l
			if n%3 == 2 {
				src, lut = grey, l[:1+2*(n%2)]
			}
			tr := RandomResizedCrop{Width: 1 + r.IntN(90), Height: 1 + r.IntN(90), Flip: 0.5, Area: [2]float64{0.001, 1}}
			v := tr.View(r, src.W, src.H)
			if n%5 == 4 {
				v.Whole = true
			}
			if n%7 == 6 {
				v = ResizeCrop{Short: 100, Width: tr.Width, Height: tr.Height}.View(nil, src.W, src.H)
			}
			var fast, plain canvas
			got, want := make([]float32, len(lut)*tr.Width*tr.Height), make([]float32, len(lut)*tr.Width*tr.Height)
			box := fast.plan(src.W, src.H, 1, v, tr.Width, tr.Height)
			if v.copies() {
				continue
			}
			part := &Picture{}
			part.reset(box.Dx(), box.Dy(), src.C)
			part.X, part.Y = box.Min.X, box.Min.Y
			for y := range part.H {
				copy(part.Pix[y*part.W*src.C:][:part.W*src.C], src.Pix[((y+part.Y)*src.W+part.X)*src.C:])
			}
			if !fast.drawFast(part, v, tr.Width, tr.Height, lut, got) {
				t.Skip("no vector instructions in this build, or on this processor")
			}
			whole := *src
			whole.Pix = slices.Clip(src.Pix) // without memory behind it
			plain.render(&whole, 1, v, tr.Width, tr.Height, lut, want)
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%+v of %d channels to %d x %d: value %d is %v, want %v", v, src.C, tr.Width, tr.Height, i, got[i], want[i])
				}
			}
		}
	}
}

// The usual normalisations need no table.
func TestLevelsAreLinear(t *testing.T) {
	for _, n := range []Norm{ImageNet, {}, {Mean: [3]float64{0.2860, 0.5, 0.1307}, Std: [3]float64{0.3530, 0.5, 0.3081}}} {
		for c, l := range planes(n, 3) {
			if !l.linear {
				t.Errorf("channel %d of %+v needs a table", c, n)
			}
		}
	}
}

// A sample is the same whether only its region is decoded or the whole picture.
func TestRegionIsEnough(t *testing.T) {
	raw := zooBytes(t, "baseline_420.jpg")
	d, err := NewDecoder(Auto)
	if err != nil {
		t.Fatal(err)
	}
	info, err := d.Header(raw)
	if err != nil || !info.quick {
		t.Fatal(err, info)
	}
	var whole, part Picture
	if _, err := d.Decode(raw, info, 1, &whole); err != nil {
		t.Fatal(err)
	}
	r := data.NewRand(4)
	lut := planes(ImageNet, 3)
	var can canvas
	for n := range 60 {
		var tr Transform = RandomResizedCrop{Width: 48, Height: 40, Flip: 0.5}
		switch n % 3 {
		case 1:
			tr = ResizeCrop{Short: 64, Width: 48, Height: 40}
		case 2:
			tr = PadCrop{Width: 48, Height: 40, Pad: 9, Flip: 0.5}
		}
		v := tr.View(r, whole.W, whole.H)
		want, got := make([]float32, 3*48*40), make([]float32, 3*48*40)
		can.render(&whole, 1, v, 48, 40, lut, want)
		box := can.plan(info.W, info.H, 1, v, 48, 40)
		if _, err := d.decode(raw, info, 1, box, &part); err != nil {
			t.Fatal(err)
		}
		if part.W == whole.W && part.H == whole.H && n%3 == 2 {
			t.Fatalf("%+v decodes everything", v)
		}
		can.draw(&part, 1, v, 48, 40, lut, got)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v differs", v)
		}
	}
}
