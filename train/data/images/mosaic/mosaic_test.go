package mosaic

import (
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"
)

// Mosaics have their size and the detail of photographs: in JPEG about two bits a pixel, where a picture that was scaled up has half of one.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "all")
	if err := Write("../../../../recipes/data/flowers/train", dir, 2); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000.jpg", "001.jpg"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c, err := jpeg.DecodeConfig(f)
		if err != nil || c.Width != Width || c.Height != Height {
			t.Errorf("%s: %+v %v", name, c, err)
		}
		if st, err := f.Stat(); err != nil || st.Size() < Width*Height/8 {
			t.Errorf("%s has %d bytes, %v", name, st.Size(), err)
		}
	}
	if err := Write(t.TempDir(), dir, 1); err == nil {
		t.Error("mosaics of nothing")
	}
}
