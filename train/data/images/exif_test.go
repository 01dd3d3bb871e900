package images

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"unsafe"
)

type oriented struct {
	Orientation, Width, Height int
	Format                     Format
	File, RGB                  []byte
}

func orientedPictures(t testing.TB) (all []oriented) {
	raw, err := os.ReadFile("testdata/exif.json")
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil || len(all) != 16 {
		t.Fatal(len(all), err)
	}
	return all
}

func TestOrientationEqualsPillow(t *testing.T) {
	d, err := NewDecoder(Go)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range orientedPictures(t) {
		if got := orientation(c.Format, c.File); got != c.Orientation {
			t.Errorf("%s: orientation %d, want %d", c.Format, got, c.Orientation)
		}
		info, err := d.Header(c.File)
		if err != nil {
			t.Fatal(err)
		}
		var p, seen Picture
		if _, err := d.Decode(c.File, info, 1, &p); err != nil {
			t.Fatal(err)
		}
		if p.turn(c.Orientation, &seen); seen.W != c.Width || seen.H != c.Height {
			t.Fatalf("%d: %d x %d, want %d x %d", c.Orientation, seen.W, seen.H, c.Width, c.Height)
		}
		for i, v := range seen.Pix {
			if d := math.Abs(float64(v) - float64(c.RGB[i])); d > 3 || c.Format == PNG && d > 0 { // JPEG decoders round differently
				t.Fatalf("%s %d: byte %d is %d, want %d", c.Format, c.Orientation, i, v, c.RGB[i])
			}
		}
	}
}

// A folder turns pictures where it is asked to, and says once that it does not where it is not.
func TestFolderOrientation(t *testing.T) {
	root := t.TempDir()
	for _, c := range orientedPictures(t) {
		name := filepath.Join(root, fmt.Sprint("class", c.Orientation%2), fmt.Sprintf("%d.%s", c.Orientation, c.Format))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, c.File, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	corner := func(f *Folder, i int) (blue float32) { // the corner of the source that is blue
		pixels := make([]float32, 3*8*8)
		dst := [][]byte{unsafe.Slice((*byte)(unsafe.Pointer(&pixels[0])), 4*len(pixels)), make([]byte, 4)}
		if err := f.Load(context.Background(), nil, i, dst); err != nil {
			t.Fatal(err)
		}
		return pixels[2*64+9]
	}
	told := 0
	o := FolderOptions{Transform: ResizeCrop{Short: 8, Width: 8, Height: 8}, Turned: func(string) { told++ }}
	for _, orient := range []bool{false, true} {
		o.Orient = orient
		f, err := NewFolder(root, o)
		if err != nil {
			t.Fatal(err)
		}
		blue := 0
		for i := range f.Len() {
			if corner(f, i) > 0.5 {
				blue++
			}
		}
		// Stored, the corner is always at the top left; seen, in orientation 1 and 5 only.
		if want := map[bool]int{false: 16, true: 4}[orient]; blue != want || told != 1 {
			t.Errorf("orient %v: %d pictures have the corner at the top left, want %d; told %d times", orient, blue, want, told)
		}
	}
}

func FuzzOrientation(f *testing.F) {
	for _, c := range orientedPictures(f) {
		f.Add(c.File)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, format := range []Format{JPEG, PNG, GIF} {
			if o := orientation(format, raw); o < 1 || o > 8 {
				t.Errorf("orientation %d", o)
			}
		}
	})
}
