package text

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A symbolic link below a directory counts as the file that it names, and a broken one is an error: neither is silently missing from the data.
func TestLinkedFilesAreRead(t *testing.T) {
	dir, blobs := t.TempDir(), t.TempDir()
	blob := filepath.Join(blobs, "blob")
	if err := os.WriteFile(blob, []byte("once"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "a.txt")
	if err := os.Symlink(blob, link); err != nil {
		t.Skip(err)
	}
	if files, size, err := expand([]string{dir}); err != nil || !slices.Equal(files, []string{link}) || size != 4 {
		t.Errorf("%v, %d bytes, %v", files, size, err)
	}
	if err := os.Remove(blob); err != nil {
		t.Fatal(err)
	}
	if files, _, err := expand([]string{dir}); err == nil {
		t.Errorf("a broken link: %v", files)
	}
}
