package images

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// identity keeps bytes as floats.
func identity(n int) []*levels {
	t := &levels{linear: true, scale: 1}
	for i := range t.at {
		t.at[i] = float32(i)
	}
	p := make([]*levels, n)
	for i := range p {
		p[i] = t
	}
	return p
}

func readPNG(t *testing.T, name string) image.Image {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func chelsea(t testing.TB) *Picture {
	t.Helper()
	p, _, err := decodeAll(Go, zooBytes(t, "png_named_jpg.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// toGray is Pillow's convert("L"), ITU-R 601-2 in 16-bit fixed point.
func toGray(p *Picture) *Picture {
	g := &Picture{W: p.W, H: p.H, C: 1, Pix: make([]byte, p.W*p.H)}
	for i := range g.Pix {
		g.Pix[i] = byte((int(p.Pix[3*i])*19595 + int(p.Pix[3*i+1])*38470 + int(p.Pix[3*i+2])*7471 + 0x8000) >> 16)
	}
	return g
}

// Resizes equal Pillow's bit for bit.
func TestResizeEqualsPillow(t *testing.T) {
	raw, err := os.ReadFile("testdata/pil/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Cases []struct {
			Name   string
			Grey   bool
			Box    [4]float64
			Size   [2]int
			Window int
		}
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Cases {
		want := readPNG(t, "testdata/pil/"+c.Name+".png")
		src, channels := chelsea(t), 3
		if c.Grey {
			src, channels = toGray(src), 1
		}
		v := View{X: c.Box[0], Y: c.Box[1], W: c.Box[2] - c.Box[0], H: c.Box[3] - c.Box[1], OutW: c.Size[0], OutH: c.Size[1]}
		if c.Window > 0 { // through the transform itself
			v = ResizeCrop{Short: c.Size[1], Width: c.Window, Height: c.Window}.View(nil, src.W, src.H)
			if v.OutW != c.Size[0] || v.OutH != c.Size[1] {
				t.Fatalf("%s: resized to %d x %d, torchvision's rule gives %v", c.Name, v.OutW, v.OutH, c.Size)
			}
		}
		w, h := want.Bounds().Dx(), want.Bounds().Dy()
		for _, flip := range []bool{false, true} {
			v.Flip = flip
			got := make([]float32, channels*w*h)
			var can canvas
			can.render(src, 1, v, w, h, identity(channels), got)
			wrong := 0
			for y := range h {
				for x := range w {
					px := color.NRGBAModel.Convert(want.At(x, y)).(color.NRGBA)
					at := x
					if flip {
						at = w - 1 - x
					}
					for ch, v := range []uint8{px.R, px.G, px.B}[:channels] {
						if got[(ch*h+y)*w+at] != float32(v) {
							wrong++
						}
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%s (flip %v): %d of %d values differ", c.Name, flip, wrong, len(got))
			}
		}
	}
}

// The dumb twin: area under the triangle filter in float64, without passes or fixed point. Two roundings to 8 bits lie between: 1.01 levels.
func TestResizeAgainstFloatTwin(t *testing.T) {
	src := chelsea(t)
	r := data.NewRand(5)
	var can canvas
	for range 30 {
		tr := RandomResizedCrop{Width: 1 + r.IntN(40), Height: 1 + r.IntN(40)}
		v := tr.View(r, src.W, src.H)
		got := make([]float32, 3*tr.Width*tr.Height)
		can.render(src, 1, v, tr.Width, tr.Height, identity(3), got)
		for k := 0; k < len(got); k += 61 {
			c, y, x := k/(tr.Width*tr.Height), k/tr.Width%tr.Height, k%tr.Width
			if want := twin(src, v, x, y, c); math.Abs(float64(got[k])-want) > 1.01 {
				t.Fatalf("%+v at (%d,%d,%d): %v, want %v", v, x, y, c, got[k], want)
			}
		}
	}
}

func twin(p *Picture, v View, x, y, c int) float64 {
	sum, total := 0.0, 0.0
	sx, sy := v.W/float64(v.OutW), v.H/float64(v.OutH)
	cx, cy := v.X+(float64(x)+0.5)*sx, v.Y+(float64(y)+0.5)*sy
	for iy := int(v.Y); iy < int(v.Y+v.H); iy++ {
		wy := triangle((float64(iy) + 0.5 - cy) / max(1, sy))
		for ix := int(v.X); ix < int(v.X+v.W); ix++ {
			w := wy * triangle((float64(ix)+0.5-cx)/max(1, sx))
			sum += w * float64(p.Pix[(iy*p.W+ix)*3+c])
			total += w
		}
	}
	return sum / total
}

func TestRandomResizedCropFollowsTheRules(t *testing.T) {
	r := data.NewRand(1)
	tr := RandomResizedCrop{Width: 224, Height: 224, Flip: 0.5}
	const n, w, h = 20000, 500, 375
	flips, area := 0, 0.0
	for range n {
		v := tr.View(r, w, h)
		a, ratio := v.W*v.H/(w*h), v.W/v.H
		if v.X < 0 || v.Y < 0 || v.X+v.W > w || v.Y+v.H > h || a < 0.075 || a > 1 || ratio < 0.74 || ratio > 1.35 {
			t.Fatalf("view %+v: area %.3f, ratio %.3f", v, a, ratio)
		}
		area += a
		if v.Flip {
			flips++
		}
	}
	if flips < n/2-400 || flips > n/2+400 {
		t.Errorf("%d of %d flipped", flips, n)
	}
	// Uniform in (0.08, 1) has mean 0.54; regions that do not fit are drawn again, which favours small ones: 0.433 by torchvision's code.
	if m := area / n; m < 0.427 || m > 0.439 {
		t.Errorf("mean area %.3f", m)
	}
	for _, s := range [][2]int{{1, 1}, {1, 1000}, {1000, 1}, {3, 2}} { // falls back to the middle
		v := tr.View(r, s[0], s[1])
		if v.W < 1 || v.H < 1 || v.X+v.W > float64(s[0]) || v.Y+v.H > float64(s[1]) {
			t.Errorf("%v: %+v", s, v)
		}
	}
}

func TestPadCrop(t *testing.T) {
	src := &Picture{W: 3, H: 2, C: 1, Pix: []byte{1, 2, 3, 4, 5, 6}}
	tr := PadCrop{Width: 3, Height: 2, Pad: 1, Flip: 0.5}
	r := data.NewRand(2)
	var can canvas
	seen := map[View]bool{}
	for range 300 {
		v := tr.View(r, 3, 2)
		seen[v] = true
		got := make([]float32, 6)
		can.render(src, 1, v, 3, 2, identity(1), got)
		for i, g := range got {
			x, y := i%3, i/3
			if v.Flip {
				x = 2 - x
			}
			x, y = x+int(v.X), y+int(v.Y)
			want := float32(0)
			if x >= 0 && x < 3 && y >= 0 && y < 2 {
				want = float32(src.Pix[y*3+x])
			}
			if g != want {
				t.Fatalf("%+v: %v", v, got)
			}
		}
	}
	if len(seen) != 18 { // 3 x 3 places, mirrored or not
		t.Errorf("%d different views, want 18", len(seen))
	}
	// A window larger than the padded picture.
	got := make([]float32, 100)
	can.render(src, 1, PadCrop{Width: 10, Height: 10}.View(r, 3, 2), 10, 10, identity(1), got)
	sum := float32(0)
	for _, g := range got {
		sum += g
	}
	if sum != 21 {
		t.Errorf("a small picture loses pixels: sum %v, want 21", sum)
	}
}

// A border that is wider than the picture leaves windows beside it. They are black.
func TestPadCropBesideThePicture(t *testing.T) {
	r := data.NewRand(3)
	src := &Picture{W: 1, H: 2, C: 1, Pix: []byte{255, 255}}
	var can canvas
	empty := 0
	for range 300 {
		got := []float32{7, 7, 7, 7}
		can.render(src, 1, PadCrop{Width: 2, Height: 2, Pad: 5}.View(r, 1, 2), 2, 2, identity(1), got)
		sum := float32(0)
		for _, g := range got {
			sum += g
		}
		if sum != 0 && sum != 255 && sum != 510 {
			t.Fatalf("a picture of two white pixels becomes %v", got)
		}
		if sum == 0 {
			empty++
		}
	}
	if empty == 0 || empty == 300 {
		t.Errorf("%d of 300 windows are beside the picture", empty)
	}
}

func TestReduceKeepsTwiceTheOutput(t *testing.T) {
	for _, c := range []struct{ w, out, limit, want int }{{895, 224, 8, 1}, {896, 224, 8, 2}, {1792, 224, 8, 4}, {9999, 224, 8, 8}, {9999, 224, 1, 1},
		{1, 1, 8, 1}} {
		v := View{W: float64(c.w), H: float64(c.w), OutW: c.out, OutH: c.out}
		if got := v.reduce(c.limit); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestNormalisation(t *testing.T) {
	p := planes(ImageNet, 3)
	for c, v := range map[int]float64{0: (1 - .485) / .229, 1: (1 - .456) / .224, 2: (1 - .406) / .225} {
		if got := float64(p[c].at[255]); math.Abs(got-v) > 1e-6 {
			t.Errorf("channel %d: 255 becomes %v, want %v", c, got, v)
		}
	}
	if p := planes(Norm{}, 1); p[0].at[255] != 1 || p[0].at[0] != 0 {
		t.Error("the zero Norm does not map to 0…1")
	}
}

func TestTransformsRefuse(t *testing.T) {
	for _, tr := range []Transform{
		RandomResizedCrop{}, RandomResizedCrop{Width: 8, Height: 8, Area: [2]float64{0.5, 0.1}}, RandomResizedCrop{Width: 8, Height: 8, Flip: 2},
		RandomResizedCrop{Width: 8, Height: 8, Ratio: [2]float64{-1, 1}}, ResizeCrop{Short: 10, Width: 20, Height: 5}, ResizeCrop{}, PadCrop{Width: 1,
			Height: 1, Pad: -1},
		PadCrop{Width: 1 << 20, Height: 1},
	} {
		if tr.Check() == nil {
			t.Errorf("%+v passes", tr)
		}
	}
	if (Norm{Std: [3]float64{1, 0, 1}}).Check() == nil {
		t.Error("a deviation of zero passes")
	}
}
