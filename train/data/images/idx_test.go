package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

// idx encodes a tensor of bytes.
func idx(pix []byte, dims ...int) []byte {
	b := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return append(b, pix...)
}

func zip(raw []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(raw)
	z.Close()
	return b.Bytes()
}

// idxFiles writes a pair of files and returns their names.
func idxFiles(t testing.TB, pics, labels []byte) (string, string) {
	t.Helper()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "pics"), filepath.Join(dir, "labels")
	for name, raw := range map[string][]byte{a: pics, b: labels} {
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func loadOne(t testing.TB, s data.Source, i int) ([]float32, int32) {
	t.Helper()
	dst := [][]byte{make([]byte, s.Fields()[0].Bytes()), make([]byte, 4)}
	r := data.SampleRand(1, 0, i)
	if err := s.Load(context.Background(), &r, i, dst); err != nil {
		t.Fatal(err)
	}
	return data.F32(dst[0]), data.I32(dst[1])[0]
}

func TestIDX(t *testing.T) {
	pics, labels := idx([]byte{0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6}, 2, 2, 3), idx([]byte{1, 3}, 2)
	for _, packed := range []bool{false, true} {
		p, l := pics, labels
		if packed {
			p, l = zip(p), zip(l)
		}
		a, b := idxFiles(t, p, l)
		s, err := NewIDX(a, b, IDXOptions{Norm: Norm{Mean: [3]float64{0.5}, Std: [3]float64{0.5}}, Channels: 3})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != 2 || !slices.Equal(s.Classes(), []string{"0", "1", "2", "3"}) || s.Fields()[0].String() != "image f32[3 2 3]" {
			t.Errorf("%d pictures, classes %v, %v", s.Len(), s.Classes(), s.Fields())
		}
		x, y := loadOne(t, s, 0)
		for i, want := range []float64{-1, -.6, -.2, .2, .6, 1} {
			for c := range 3 {
				if math.Abs(float64(x[c*6+i])-want) > 1e-6 {
					t.Errorf("plane %d pixel %d: %v, want %v", c, i, x[c*6+i], want)
				}
			}
		}
		if y != 1 {
			t.Errorf("label %d", y)
		}
	}
}

func TestIDXRefuses(t *testing.T) {
	good := idx(make([]byte, 12), 2, 2, 3)
	for name, c := range map[string]struct {
		pics, labels []byte
		want         string
	}{
		"magic":          {[]byte("PK\x03\x04zipfile"), idx([]byte{0, 0}, 2), "not an IDX file"},
		"empty":          {nil, idx([]byte{0, 0}, 2), "cannot read the IDX header"},
		"type":           {[]byte{0, 0, 0x0d, 1, 0, 0, 0, 0}, idx([]byte{0, 0}, 2), "element type 0x0d"},
		"short header":   {good[:9], idx([]byte{0, 0}, 2), "ends in dimension 1"},
		"cut":            {good[:20], idx([]byte{0, 0}, 2), "truncated at byte 4 of 12"},
		"too long":       {append(slices.Clone(good), 1), idx([]byte{0, 0}, 2), "has extra bytes"},
		"forged":         {idx(nil, 1<<31, 1<<31, 1<<31), idx([]byte{0, 0}, 2), "claims"},
		"cut gzip":       {zip(good)[:20], idx([]byte{0, 0}, 2), "EOF"},
		"counts":         {good, idx([]byte{0, 0, 0}, 3), "2 pictures"},
		"dims":           {idx([]byte{0, 0}, 2), idx([]byte{0, 0}, 2), "want pictures, height, width"},
		"label dims":     {good, idx([]byte{0, 0}, 1, 2), "want one"},
		"nothing inside": {idx(nil, 0, 2, 3), idx(nil, 0), "no pictures"},
	} {
		a, b := idxFiles(t, c.pics, c.labels)
		_, err := NewIDX(a, b, IDXOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Dir(a)) {
			t.Errorf("%s: %v, want %q and the file in it", name, err, c.want)
		}
	}
	a, b := idxFiles(t, good, idx([]byte{0, 5}, 2))
	if _, err := NewIDX(a, b, IDXOptions{Classes: []string{"x", "y"}}); err == nil || !strings.Contains(err.Error(), "label 5 of picture 1") {
		t.Errorf("label beyond the classes: %v", err)
	}
	if _, err := NewIDX(a, b, IDXOptions{Channels: 2}); err == nil {
		t.Error("two channels pass")
	}
}

func TestBundledFashion(t *testing.T) {
	dir, err := data.Locate("fashion-mini")
	if err != nil {
		t.Fatal(err)
	}
	for split, n := range map[string]int{"train": 2000, "test": 500} {
		p, l, err := FindIDX(dir, split)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewIDX(p, l, IDXOptions{Transform: PadCrop{Width: 28, Height: 28, Pad: 2, Flip: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != n || len(s.Classes()) != 10 {
			t.Errorf("%s: %d pictures, %d classes", split, s.Len(), len(s.Classes()))
		}
		if split == "train" {
			if _, y := loadOne(t, s, 0); y != 9 { // the well-known first ankle boot
				t.Errorf("first label %d", y)
			}
		}
		if a, _ := s.Fingerprint(); len(a) != 16 {
			t.Errorf("fingerprint %q", a)
		}
	}
	if _, _, err := FindIDX(dir, "nope"); err == nil {
		t.Error("unknown split passes")
	}
	if _, _, err := FindIDX(t.TempDir(), "train"); err == nil || !strings.Contains(err.Error(), "labels") || !strings.Contains(err.Error(), "images-idx3") {
		t.Errorf("missing files: %v", err)
	}
}

func FuzzIDX(f *testing.F) {
	f.Add(idx([]byte{1, 2, 3, 4, 5, 6}, 1, 2, 3))
	f.Add(zip(idx([]byte{1, 2}, 2)))
	f.Add(idx(nil, 1<<31, 1<<31))
	f.Add([]byte{0, 0, 8, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := ReadIDX(io.LimitReader(bytes.NewReader(raw), 1<<16))
		if err != nil {
			return
		}
		n := 1
		for _, d := range x.Dims {
			n *= d
		}
		if len(x.Dims) == 0 || n != len(x.Data) {
			t.Errorf("%v with %d bytes", x.Dims, len(x.Data))
		}
	})
}
