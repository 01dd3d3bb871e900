package foreign

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A name in a table stays on its line.
func TestLine(t *testing.T) {
	if got := Line("a\nb\tc\x1b[1m"); got != `a\nb\tc\x1b[1m` {
		t.Errorf("%q", got)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir: "a directory", os.DevNull: "a device"} {
		if _, err := Open(path); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err == nil {
		if raw, err := ReadFile(link, 4); err != nil || string(raw) != "text" {
			t.Errorf("%q, %v", raw, err)
		}
	}
	if _, err := ReadFile(file, 3); !errors.Is(err, ErrLarge) {
		t.Error(err)
	}
}

// A file of unknown size, as in /proc, is read to its end, or to the limit.
func TestReadFileOfUnknownSize(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	raw, err := ReadFile("/proc/self/status", 1<<20)
	if err != nil || !bytes.HasPrefix(raw, []byte("Name:")) || len(raw) < 500 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if _, err := ReadFile("/proc/self/status", 100); !errors.Is(err, ErrLarge) {
		t.Error(err)
	}
}

func zeros(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, zeroReader{}, n); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestGunzip(t *testing.T) {
	for n, want := range map[int64]error{10 << 20: nil, 200 << 20: ErrBomb} {
		r, err := Gunzip(bytes.NewReader(zeros(t, n)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.Copy(io.Discard, r)
		if !errors.Is(err, want) || want == nil && got != n || got > free+1<<20 {
			t.Errorf("%d zeros: %d bytes, %v", n, got, err)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"plain ü 世界\tx\n":         "plain ü 世界\tx\n",
		"\x1b]0;title\x07\x1b[2J": `\x1b]0;title\x07\x1b[2J`,
		"a\rb\x7f\u009b31m":       `a\rb\u007f\u009b31m`,
		"\x9b31m\xff":             `\x9b31m\xff`,
		"\u202egnp.exe":           `\u202egnp.exe`,
		"\ufffd":                  "\ufffd",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		var b strings.Builder
		w := Writer(&b)
		for i := range len(in) { // a byte at a time
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := b.String(); got != want && !strings.HasSuffix(in, "\xff") {
			t.Errorf("%q in pieces became %q, want %q", in, got, want)
		}
	}
}
