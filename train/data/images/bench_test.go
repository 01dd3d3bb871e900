package images

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// BenchmarkFolder prints pictures a second on one core: read, decode, RandomResizedCrop to 224 and normalise. The pictures are the bundled flowers
// (0.06 megapixels on average; ImageNet's have 0.18, "big" are such).
func BenchmarkFolder(b *testing.B) {
	root, err := data.Locate("flowers/train")
	if err != nil {
		b.Skip(err)
	}
	big := b.TempDir()
	enlarge(b, root, big)
	for _, set := range []struct{ name, root string }{{"flowers", root}, {"big", big}} {
		for _, be := range backends(b) {
			b.Run(fmt.Sprintf("%s/%s", set.name, be), func(b *testing.B) {
				f, err := NewFolder(set.root, FolderOptions{Transform: RandomResizedCrop{Width: 224, Height: 224, Flip: 0.5}, Norm: ImageNet, Decoder: be})
				if err != nil {
					b.Fatal(err)
				}
				dst := [][]byte{make([]byte, 3*224*224*4), make([]byte, 4)}
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					r := data.SampleRand(1, 0, n)
					if err := f.Load(context.Background(), &r, n%f.Len(), dst); err != nil {
						b.Fatal(err)
					}
					n++
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "pictures/s")
			})
		}
	}
}

func BenchmarkRender(b *testing.B) {
	src := &Picture{W: 500, H: 375, C: 3, Pix: make([]byte, 500*375*3)}
	dst := make([]float32, 3*224*224)
	var can canvas
	lut := planes(ImageNet, 3)
	r := data.NewRand(1)
	for b.Loop() {
		can.render(src, 1, RandomResizedCrop{Width: 224, Height: 224, Flip: 0.5}.View(r, src.W, src.H), 224, 224, lut, dst)
	}
}

// enlarge tiles pictures of root to 500 x 375 pixels, which keeps their detail.
func enlarge(b *testing.B, root, dst string) {
	b.Helper()
	files, _ := filepath.Glob(filepath.Join(root, "*", "*.jpg"))
	if len(files) < 80 {
		b.Fatalf("%d pictures below %s", len(files), root)
	}
	if err := os.Mkdir(filepath.Join(dst, "all"), 0o755); err != nil {
		b.Fatal(err)
	}
	next := 0
	for n := range 20 {
		out := image.NewRGBA(image.Rect(0, 0, 500, 375))
		for y := 0; y < 375; {
			low := 375
			for x := 0; x < 500; {
				raw, err := os.ReadFile(files[next%len(files)])
				if err != nil {
					b.Fatal(err)
				}
				img, err := jpeg.Decode(bytes.NewReader(raw))
				if err != nil {
					b.Fatal(err)
				}
				next++
				draw.Draw(out, img.Bounds().Add(image.Pt(x, y)), img, image.Point{}, draw.Src)
				x += img.Bounds().Dx()
				low = min(low, img.Bounds().Dy())
			}
			y += low
		}
		var buf bytes.Buffer
		if err := jpeg.Encode(&buf, out, &jpeg.Options{Quality: 90}); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dst, "all", fmt.Sprintf("%02d.jpg", n)), buf.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}
