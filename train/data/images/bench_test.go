package images

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/mosaic"
)

// BenchmarkFolder prints pictures a second on one core: read, decode, RandomResizedCrop to 224 and normalise. The pictures are the bundled flowers
// (0.06 megapixels on average; ImageNet's have 0.18, "big" are such).
func BenchmarkFolder(b *testing.B) {
	root, err := data.Locate("flowers/train")
	if err != nil {
		b.Skip(err)
	}
	big := b.TempDir()
	if err := mosaic.Write(root, filepath.Join(big, "all"), 20); err != nil {
		b.Fatal(err)
	}
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
