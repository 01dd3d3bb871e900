package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gotrain/gotrain/train/data/images/turbojpeg"
)

// pictures are all files of the zoo, and some of the bundled photographs.
func pictures(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"../testdata/zoo/*.jpg", "../../../../recipes/data/flowers/train/*/*2_m.jpg"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 8 {
			t.Fatalf("%d files %s, %v", len(files), pattern, err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(f)] = raw
		}
	}
	return all
}

// others are the files of the zoo that another decoder must look at.
var others = []string{
	"arithmetic.jpg", "baseline_411.jpg", "baseline_440.jpg", "cmyk_adobe.jpg", "corrupt_scan.jpg", "empty.jpg", "gif_named_jpg.jpg", "gray_progressive.jpg",
	"huge_size.jpg", "missing_huffman.jpg", "no_eoi.jpg", "one_column.jpg", "one_pixel.jpg", "only_soi.jpg", "png_named_jpg.jpg", "progressive_420.jpg",
	"progressive_444.jpg", "progressive_truncated.jpg", "rgb_adobe.jpg", "text.jpg", "truncated_60.jpg", "truncated_header.jpg", "zero_size.jpg",
}

// whole decodes all of a picture.
func whole(d *Decoder, raw []byte) (w, h int, pix []byte, err error) {
	if err := d.Parse(raw); err != nil {
		return 0, 0, nil, err
	}
	w, h = d.Size()
	pix = make([]byte, 3*w*h)
	return w, h, pix, d.Decode(raw, image.Rect(0, 0, w, h), pix)
}

func library(t testing.TB, raw []byte) []byte {
	t.Helper()
	lib, err := turbojpeg.New()
	if err != nil {
		t.Skip(err)
	}
	defer lib.Close()
	hdr, err := lib.Header(raw)
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, 3*hdr.Width*hdr.Height)
	if warning, err := lib.Decode(raw, hdr, 1, pix); err != nil || warning != "" {
		t.Fatal(err, warning)
	}
	return pix
}

// Whole pictures equal libjpeg-turbo's, byte for byte; what is refused is known by name.
func TestEqualsLibrary(t *testing.T) {
	var d Decoder
	decoded := 0
	for name, raw := range pictures(t) {
		_, _, pix, err := whole(&d, raw)
		if other := slices.Contains(others, name); other || err != nil {
			if !other || !errors.Is(err, ErrOther) && !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		decoded++
		if want := library(t, raw); !bytes.Equal(pix, want) {
			t.Errorf("%s: %s", name, difference(pix, want))
		}
	}
	if decoded < 36 {
		t.Errorf("%d pictures decoded", decoded)
	}
}

func difference(a, b []byte) string {
	n, first, most := 0, -1, 0
	for i := range a {
		if a[i] != b[i] {
			if n++; first < 0 {
				first = i
			}
			most = max(most, int(a[i])-int(b[i]), int(b[i])-int(a[i]))
		}
	}
	return fmt.Sprintf("%d of %d bytes differ, the first at %d, by at most %d", n, len(a), first, most)
}

// A region is what the whole picture has there, and C and Go agree.
func TestRegions(t *testing.T) {
	var d, plain Decoder
	plain.plain = true
	r := rand.New(rand.NewPCG(1, 2))
	for name, raw := range pictures(t) {
		w, h, all, err := whole(&d, raw)
		if err != nil {
			continue
		}
		_, _, same, err := whole(&plain, raw)
		if err != nil || !bytes.Equal(all, same) {
			t.Fatalf("%s: C and Go differ: %v, %s", name, err, difference(all, same))
		}
		for i := range 12 {
			x, y := r.IntN(w), r.IntN(h)
			box := image.Rect(x, y, x+1+r.IntN(w-x), y+1+r.IntN(h-y))
			pix := make([]byte, 3*box.Dx()*box.Dy())
			k := &d
			if i%4 == 3 {
				k = &plain
			}
			if err := k.Parse(raw); err != nil {
				t.Fatal(err)
			}
			if err := k.Decode(raw, box, pix); err != nil {
				t.Fatalf("%s %v: %v", name, box, err)
			}
			for row := range box.Dy() {
				n := 3 * box.Dx()
				if want := all[3*((y+row)*w+x):][:n]; !bytes.Equal(pix[row*n:][:n], want) {
					t.Fatalf("%s %v of %d x %d, Go %v: row %d: %s", name, box, w, h, k.plain, row, difference(pix[row*n:][:n], want))
				}
			}
		}
	}
}

// The build for any processor gives the same bytes.
func TestBuilds(t *testing.T) {
	var d Decoder
	for name, raw := range pictures(t) {
		w, h, all, err := whole(&d, raw)
		if err != nil {
			continue
		}
		base := make([]byte, len(all))
		var j job
		scratch := j.set(&d.f, image.Rect(0, 0, w, h))
		k := d.kernels(&j)
		j.isa = 0
		planes := make([]byte, scratch)
		if !d.scan(k, &j, raw[d.f.scan:d.f.end+2], planes) {
			t.Fatalf("%s is refused", name)
		}
		k.color(&j, planes, base)
		if !bytes.Equal(all, base) {
			t.Errorf("%s: %s", name, difference(base, all))
		}
	}
}

func TestRefusesWrongArguments(t *testing.T) {
	var d Decoder
	raw := pictures(t)["baseline_420.jpg"]
	if err := d.Decode(raw, image.Rect(0, 0, 1, 1), make([]byte, 3)); err == nil {
		t.Error("decodes without a picture")
	}
	if err := d.Parse(raw); err != nil {
		t.Fatal(err)
	}
	w, h := d.Size()
	for _, r := range []image.Rectangle{{}, image.Rect(-1, 0, 5, 5), image.Rect(0, 0, w+1, h), image.Rect(3, 3, 3, 9)} {
		if err := d.Decode(raw, r, make([]byte, 3*max(0, r.Dx()*r.Dy()))); err == nil {
			t.Errorf("decodes %v of %d x %d", r, w, h)
		}
	}
	if err := d.Decode(raw, image.Rect(0, 0, 4, 4), make([]byte, 47)); err == nil {
		t.Error("decodes into memory that is too small")
	}
	if err := d.Decode(raw[:len(raw)-9], image.Rect(0, 0, 4, 4), make([]byte, 48)); err == nil {
		t.Error("decodes another file than the one parsed")
	}
	if err := d.Decode(raw, image.Rect(0, 0, 4, 4), make([]byte, 48)); err != nil {
		t.Errorf("a right call afterwards: %v", err)
	}
}

// Whatever the bytes, C and Go agree on the outcome, and nothing is written or read out of bounds.
func FuzzDecode(f *testing.F) {
	for _, raw := range pictures(f) {
		if len(raw) < 12000 {
			f.Add(raw, uint16(3), uint16(5), uint16(40), uint16(60))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, x, y, w, h uint16) {
		var d, plain Decoder
		plain.plain = true
		if d.Parse(raw) != nil {
			return
		}
		pw, ph := d.Size()
		if pw*ph > 1<<20 {
			return
		}
		box := image.Rect(int(x)%pw, int(y)%ph, int(x)%pw+1+int(w), int(y)%ph+1+int(h)).Intersect(image.Rect(0, 0, pw, ph))
		a, b := make([]byte, 3*box.Dx()*box.Dy()), make([]byte, 3*box.Dx()*box.Dy())
		err := d.Decode(raw, box, a)
		if e := plain.Parse(raw); e != nil {
			t.Fatal(e)
		}
		if e := plain.Decode(raw, box, b); (e == nil) != (err == nil) {
			t.Fatalf("C says %v, Go says %v", err, e)
		} else if err == nil && !bytes.Equal(a, b) {
			t.Fatal(difference(a, b))
		}
	})
}

// BenchmarkDecode compares with the library, on a photograph.
func BenchmarkDecode(b *testing.B) {
	files, err := filepath.Glob("../../../../recipes/data/flowers/train/*/*.jpg")
	if err != nil || len(files) == 0 {
		b.Skip("no photographs")
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	var d Decoder
	w, h, _, err := whole(&d, raw)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		box   image.Rectangle
		plain bool
	}{{"whole", image.Rect(0, 0, w, h), false}, {"middle", image.Rect(w/6, h/6, w-w/6, h-h/6), false}, {"go", image.Rect(0, 0, w, h), true}} {
		b.Run(c.name, func(b *testing.B) {
			d.plain = c.plain
			pix := make([]byte, 3*c.box.Dx()*c.box.Dy())
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(d.Parse(raw), d.Decode(raw, c.box, pix)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("library", func(b *testing.B) {
		lib, err := turbojpeg.New()
		if err != nil {
			b.Skip(err)
		}
		pix := make([]byte, 3*w*h)
		for b.Loop() {
			hdr, err := lib.Header(raw)
			if err == nil {
				_, err = lib.Decode(raw, hdr, 1, pix)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Memory that was made for another file is used again if it is large enough, and only then.
func TestMemoryOfAnotherFile(t *testing.T) {
	for _, plain := range []bool{false, true} {
		d := Decoder{}
		d.plain = plain
		raw := pictures(t)["baseline_420.jpg"]
		for spare := range 4 {
			if err := d.Parse(raw); err != nil {
				t.Fatal(err)
			}
			d.data = make([]byte, d.f.end-d.f.scan+padding+spare)
			if _, _, _, err := whole(&d, raw); err != nil {
				t.Errorf("plain %v, %d bytes more than the scan: %v", plain, spare, err)
			}
		}
	}
}
