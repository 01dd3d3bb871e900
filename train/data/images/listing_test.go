package images

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func listingOf(t testing.TB) (*Folder, FolderOptions) {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"cat/1.jpg", "cat/2.png", "dog/a b.jpeg", "zebra/\u00e9.jpg"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := FolderOptions{Transform: ResizeCrop{Short: 8, Width: 8, Height: 8}}
	f, err := NewFolder(root, o)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

func TestListing(t *testing.T) {
	f, o := listingOf(t)
	o.Listing = f.Listing()
	g, err := NewFolder(f.root, o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.classes, f.classes) || !slices.Equal(g.pictures, f.pictures) || g.Path(2) != filepath.Join(f.root, "dog", "a b.jpeg") {
		t.Errorf("listed %v %v, read %v %v", g.classes, g.pictures, f.classes, f.pictures)
	}
	a, err := f.Fingerprint()
	if b, err2 := g.Fingerprint(); err != nil || err2 != nil || a != b {
		t.Errorf("fingerprints %s %v, %s %v", a, err, b, err2)
	}
	o.Classes = []string{"cat", "dog"}
	if _, err := NewFolder(f.root, o); err == nil || !strings.Contains(err.Error(), "opened with 2") {
		t.Errorf("other classes: %v", err)
	}
	o.Classes = nil
	for n := range len(o.Listing) {
		cut := o
		if cut.Listing = o.Listing[:n]; n == 0 {
			cut.Listing = []byte{}
		}
		if _, err := NewFolder(f.root, cut); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(o.Listing))
		}
	}
	o.Listing = append(bytes.Clone(o.Listing), 0)
	if _, err := NewFolder(f.root, o); err == nil || !strings.Contains(err.Error(), "follow its end") {
		t.Errorf("a byte too many: %v", err)
	}
	o.Listing = bytes.Replace(f.Listing(), []byte("1.jpg"), []byte("../1x"), 1)
	if _, err := NewFolder(f.root, o); err == nil || !strings.Contains(err.Error(), "not the name of a file") {
		t.Errorf("a name that leads elsewhere: %v", err)
	}
}

func FuzzListing(f *testing.F) {
	g, o := listingOf(f)
	f.Add(g.Listing())
	f.Fuzz(func(t *testing.T, b []byte) {
		o := o
		if o.Listing = b; b == nil {
			return
		}
		h, err := NewFolder(g.root, o)
		if err != nil {
			return
		}
		for i := range h.Len() {
			if !strings.HasPrefix(h.Path(i), g.root) {
				t.Errorf("%q is outside of the folder", h.Path(i))
			}
		}
	})
}
