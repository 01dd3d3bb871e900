package images

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// The first frame of a GIF is what Pillow makes of it, also where it is smaller than the screen or transparent.
func TestGIFEqualsPillow(t *testing.T) {
	raw, err := os.ReadFile("testdata/gif.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct{ File, RGB []byte }
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 5 {
		t.Fatal(len(cases), err)
	}
	d, err := NewDecoder(Go)
	if err != nil {
		t.Fatal(err)
	}
	var p Picture
	for name, c := range cases {
		info, err := d.Header(c.File)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := d.Decode(c.File, info, 1, &p); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(p.Pix, c.RGB) {
			t.Errorf("%s: %v, want %v", name, p.Pix, c.RGB)
		}
	}
}
