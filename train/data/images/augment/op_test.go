package augment

import (
	"encoding/json"
	"image"
	"image/png"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// fixture is what Pillow, timm and torchvision make; see testdata/make.py.
type fixture struct {
	Width, Height, Columns int
	Fill                   [3]byte
	Cases                  []struct {
		Op  string
		Arg float64
	}
	Levels  map[string]map[string]map[string][]float64
	Targets []struct {
		Labels         []int32
		Classes        int
		Lam, Smoothing float64
		Target         [][]float64
	}
	sheet image.Image
}

func load(t testing.TB) *fixture {
	raw, err := os.ReadFile("testdata/ops.json")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	if err := json.Unmarshal(raw, f); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("testdata/ops.png")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if f.sheet, err = png.Decode(file); err != nil {
		t.Fatal(err)
	}
	return f
}

// picture is one of the sheet; 0 is the original.
func (f *fixture) picture(i int) *Pixels {
	p := &Pixels{}
	p.Reset(f.Width, f.Height, 3)
	x0, y0 := i%f.Columns*f.Width, i/f.Columns*f.Height
	for y := range p.H {
		for x := range p.W {
			r, g, b, _ := f.sheet.At(x0+x, y0+y).RGBA()
			copy(p.Pix[(y*p.W+x)*3:], []byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)})
		}
	}
	return p
}

// Every operation gives Pillow's pixels.
func TestOpsEqualPillow(t *testing.T) {
	f := load(t)
	seen := map[string]bool{"Identity": true}
	for i, c := range f.Cases {
		op, ok := Lookup(c.Op)
		if !ok {
			t.Fatalf("no operation %s", c.Op)
		}
		seen[c.Op] = true
		got, want := f.picture(0), f.picture(i+1)
		op.Apply(got, &Scratch{}, c.Arg, f.Fill)
		worst, off := 0, 0
		for k := range got.Pix {
			d := int(math.Abs(float64(got.Pix[k]) - float64(want.Pix[k])))
			if d > 0 {
				off++
			}
			worst = max(worst, d)
		}
		if worst > 0 {
			t.Errorf("%s %g: %d of %d bytes differ, by up to %d", c.Op, c.Arg, off, len(got.Pix), worst)
		}
	}
	for _, n := range Names() {
		if !seen[n] {
			t.Errorf("operation %s has no fixture", n)
		}
	}
}

// Policies choose the arguments of timm and torchvision.
func TestMagnitudesEqualTimmAndTorchvision(t *testing.T) {
	f := load(t)
	for space, of := range map[string][]choice{"timm": timmSpace, "vision": narrow, "trivial": wide} {
		for level, ops := range f.Levels[space] {
			var m float64
			if err := json.Unmarshal([]byte(level), &m); err != nil {
				t.Fatal(err)
			}
			m /= map[string]float64{"timm": 10, "vision": 30, "trivial": 30}[space]
			if len(ops) != len(of) {
				t.Errorf("%s has %d operations, want %d", space, len(of), len(ops))
			}
			for _, c := range of {
				var got []float64
				r := data.NewRand(1)
				for range 40 { // both signs
					v := c.draw(r, m, 331, 200)
					if c.around && space == "timm" {
						v = max(0.1, v)
					}
					if !slices.ContainsFunc(got, func(x float64) bool { return math.Abs(x-v) < 1e-9 }) {
						got = append(got, v)
					}
				}
				slices.Sort(got)
				want, ok := ops[c.op]
				if !ok || !slices.EqualFunc(got, slices.CompactFunc(want, near), near) {
					t.Errorf("%s at %s: %s takes %v, want %v", space, level, c.op, got, want)
				}
			}
		}
	}
}

// near allows for the float32 in which torchvision keeps its magnitudes.
func near(a, b float64) bool { return math.Abs(a-b) < 2e-5 }

// A grey picture is changed like a colour picture with three equal channels.
func TestGreyEqualsColour(t *testing.T) {
	f := load(t)
	colour := f.picture(0)
	grey := &Pixels{}
	grey.Reset(colour.W, colour.H, 1)
	for i := range grey.Pix {
		v := colour.Pix[3*i]
		grey.Pix[i], colour.Pix[3*i+1], colour.Pix[3*i+2] = v, v, v
	}
	for _, c := range f.Cases {
		a, b := &Pixels{}, &Pixels{}
		a.Reset(colour.W, colour.H, 3)
		copy(a.Pix, colour.Pix)
		b.Reset(grey.W, grey.H, 1)
		copy(b.Pix, grey.Pix)
		op, _ := Lookup(c.Op)
		fill := [3]byte{90, 90, 90}
		op.Apply(a, &Scratch{}, c.Arg, fill)
		op.Apply(b, &Scratch{}, c.Arg, fill)
		for i := range b.Pix {
			if a.Pix[3*i] != b.Pix[i] {
				t.Errorf("%s %g: pixel %d is %d, in colour %d", c.Op, c.Arg, i, b.Pix[i], a.Pix[3*i])
				break
			}
		}
	}
}

// Pictures of one pixel, one row and one column are fine.
func TestTinyPictures(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {5, 1}, {1, 5}, {2, 2}, {3, 3}} {
		for _, c := range []int{1, 3} {
			for _, n := range Names() {
				p := &Pixels{}
				p.Reset(size[0], size[1], c)
				for i := range p.Pix {
					p.Pix[i] = byte(i * 37)
				}
				op, _ := Lookup(n)
				op.Apply(p, &Scratch{}, 0.4, [3]byte{})
				op.Apply(p, &Scratch{}, -0.4, [3]byte{})
			}
		}
	}
}
