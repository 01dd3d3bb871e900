package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// A picture that is prepared alone is the sample that the folder of the evaluation gives, bit by bit, from file, bytes and reader.
func TestPreparedIsTheSample(t *testing.T) {
	root := filepath.Join("..", "..", "..", "recipes", "data", "flowers", "val")
	for _, o := range []FolderOptions{
		{Transform: ResizeCrop{Short: 64, Width: 56, Height: 56}, Norm: ImageNet},
		{Transform: ResizeCrop{Width: 300, Height: 40}, Orient: true},
		{Transform: RandomResizedCrop{Width: 28, Height: 28}, Norm: ImageNet},
		{Transform: PadCrop{Width: 32, Height: 32, Pad: 4}},
	} {
		f, err := NewFolder(root, o)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := ParsePreparation(f.Preparation())
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPreparer(spec)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(p.Preparation())
		if err != nil || string(again) != string(f.Preparation()) {
			t.Errorf("%s became %s, %v", f.Preparation(), again, err)
		}
		crop, fixed := o.Transform.(ResizeCrop)
		if !fixed { // the usual evaluation of a random transform
			if w, h := o.Transform.Size(); spec.Width != w || spec.Height != h || spec.Short != 0 && spec.Short != 32 {
				t.Errorf("%+v", spec)
			}
			continue
		}
		sample, got, label := make([]byte, 4*3*crop.Width*crop.Height), make([]float32, p.Elems()), make([]byte, 4)
		want := data.F32(sample)
		for i := 0; i < f.Len(); i += 17 {
			if err := f.Load(t.Context(), data.NewRand(1), i, [][]byte{sample, label}); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(f.Path(i))
			if err != nil {
				t.Fatal(err)
			}
			for how, err := range map[string]error{"file": p.File(got, f.Path(i)), "bytes": p.Bytes(got, raw), "reader": p.Reader(got, bytes.NewReader(raw))} {
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, %s: differs, %v", f.Path(i), how, err)
				}
				clear(got)
				if err := p.File(got, f.Path(i)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// A decoded picture gives what its file gives, also as a part of a larger one, and in grey.
func TestPreparedImages(t *testing.T) {
	whole := image.NewNRGBA(image.Rect(-5, 3, 60, 70))
	for i := range whole.Pix {
		whole.Pix[i] = uint8(i * i >> 3)
	}
	for i := 3; i < len(whole.Pix); i += 4 {
		whole.Pix[i] = 255
	}
	for _, c := range []int{1, 3} {
		p, err := NewPreparer(Preparation{Channels: c, Height: 20, Width: 24, Short: 30, Mean: []float64{0.1, 0.2, 0.3}[:c], Std: []float64{0.5, 0.6, 0.7}[:c]})
		if err != nil {
			t.Fatal(err)
		}
		for _, img := range []image.Image{whole, whole.SubImage(image.Rect(10, 20, 50, 51))} {
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			want, got := make([]float32, p.Elems()), make([]float32, p.Elems())
			if err := errors.Join(p.Bytes(want, b.Bytes()), p.Image(got, img)); err != nil || !slices.Equal(want, got) {
				t.Errorf("%d channels, %v: the picture differs from its file, %v", c, img.Bounds(), err)
			}
		}
		if err := p.Image(make([]float32, p.Elems()), image.NewGray(image.Rectangle{})); err == nil {
			t.Error("an empty picture")
		}
		if err := p.Bytes(make([]float32, 3), nil); err == nil || !strings.Contains(err.Error(), "room for 3 elements") {
			t.Error(err)
		}
	}
}

// Grey is Pillow's: convert("L") of these colours gives these levels.
func TestGreyIsPillows(t *testing.T) {
	p, g := Picture{W: 5, H: 1, C: 3, Pix: []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 200, 30, 123, 45, 67}}, Picture{}
	p.toGrey(&g)
	if want := []byte{76, 150, 29, 124, 71}; !slices.Equal(g.Pix, want) {
		t.Errorf("%v, want %v", g.Pix, want)
	}
}

// A stored grey picture and the same as an image give the same input.
func TestPreparedGreyIsTheSampleOfIDX(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "recipes", "data", "fashion-mini")
	pics, labels, err := FindIDX(dir, "test")
	if err != nil {
		t.Skip(err)
	}
	src, err := NewIDX(pics, labels, IDXOptions{Norm: Norm{Mean: [3]float64{0.286}, Std: [3]float64{0.353}}})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ParsePreparation(src.Preparation())
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPreparer(spec)
	if err != nil {
		t.Fatal(err)
	}
	sample, got, label := make([]byte, 4*784), make([]float32, 784), make([]byte, 4)
	want := data.F32(sample)
	for i := range 20 {
		if err := src.Load(t.Context(), nil, i, [][]byte{sample, label}); err != nil {
			t.Fatal(err)
		}
		img := &image.Gray{Pix: src.images.Data[784*i:][:784], Stride: 28, Rect: image.Rect(0, 0, 28, 28)}
		if err := p.Image(got, img); err != nil || !slices.Equal(got, want) {
			t.Errorf("picture %d differs, %v", i, err)
		}
	}
}

// One Preparer serves many goroutines.
func TestPreparerIsSafe(t *testing.T) {
	p, err := NewPreparer(Preparation{Channels: 3, Height: 8, Width: 8, Short: 8})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			dst := make([]float32, p.Elems())
			for i := range 20 {
				level := uint8(10*g + i)
				img := image.NewRGBA(image.Rect(0, 0, 9+i, 12))
				for k := range img.Pix {
					img.Pix[k] = level
				}
				img.Set(0, 0, color.RGBA{level, level, level, 255})
				if err := p.Image(dst, img); err != nil || slices.ContainsFunc(dst, func(v float32) bool { return v != float32(float64(level)/255) }) {
					t.Errorf("level %d: %v %v", level, dst[:3], err)
				}
			}
		})
	}
	wg.Wait()
}

// What a checkpoint holds is checked before it is used.
func TestPreparationsThatAreWrong(t *testing.T) {
	for _, raw := range []string{
		`{}`, `[]`, `{"channels": 4, "height": 8, "width": 8}`, `{"channels": 3, "height": 0, "width": 8}`, `{"channels": 3, "height": 8, "width": 99999999}`,
		`{"channels": 3, "height": 8, "width": 8, "short": 4}`, `{"channels": 3, "height": 8, "width": 8, "mean": [0.5]}`,
		`{"channels": 1, "height": 8, "width": 8, "mean": [0.5], "std": [0]}`, `{"channels": 3, "height": 8, "width": 8, "mean": [1,1,1], "std": [1,1]}`,
	} {
		if p, err := ParsePreparation([]byte(raw)); err == nil {
			t.Errorf("%s: accepted as %+v", raw, p)
		}
	}
}
