package mosaic

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/jpeg"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/train/foreign"
)

// Width and Height of a mosaic in pixels.
const (
	Width  = 500
	Height = 375
)

// least is how many photographs it takes.
const least = 80

// Write makes n pictures from the photographs in the folders below from (from/CLASS/*.jpg), of which there must be enough to have few of them twice.
func Write(from, to string, n int) error {
	files, err := filepath.Glob(filepath.Join(from, "*", "*.jpg"))
	if err != nil || len(files) < least {
		return errors.Join(err, fmt.Errorf("mosaic: %d photographs below %s, want at least %d", len(files), from, least))
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	next := 0
	for i := range n {
		out := image.NewRGBA(image.Rect(0, 0, Width, Height))
		for y := 0; y < Height; {
			low := Height
			for x := 0; x < Width; {
				raw, err := foreign.ReadFile(files[next*37%len(files)], 64<<20)
				if err != nil {
					return err
				}
				img, err := jpeg.Decode(bytes.NewReader(raw))
				if err != nil {
					return err
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
			return err
		}
		if err := os.WriteFile(filepath.Join(to, fmt.Sprintf("%03d.jpg", i)), buf.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
