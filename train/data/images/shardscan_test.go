package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The JSON of a sample says its label only where a value does, and is in order where its label is needed.
func TestJSONLabel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tar")
	for _, c := range []struct {
		json, cls, field string
		word             string // "!" and what is reported
	}{
		{json: `{"label": null, "cls": 4}`, word: "4"},
		{json: `{"label": null}`, word: "!no label"},
		{json: `{"label": null}`, cls: "7", word: "7"},
		{json: `{"label": null}`, cls: "7", field: "label", word: `!no "label"`},
		{json: `{"label": "null"}`, word: "null"},
		{json: `[1, 2]`, cls: "7", word: "7"},
		{json: `[1, 2]`, word: "!no JSON object"},
		{json: `[1, 2]`, cls: "7", field: "label", word: "!no JSON object"},
		{json: `{"label": {}}`, cls: "7", word: "7"},
		{json: strings.Repeat(" ", maxJSON+1), cls: "7", word: "7"},
		{json: strings.Repeat(" ", maxJSON+1), word: "!too many for a label"},
	} {
		members := []string{"1.jpg", "PIC", "1.json", c.json}
		if c.cls != "" {
			members = append(members, "1.cls", c.cls)
		}
		archive(t, file, members...)
		list, err := scan(t.Context(), file, c.field)
		if problem, bad := strings.CutPrefix(c.word, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), problem) {
				t.Errorf("%.40s: %v, want %q", c.json, err, problem)
			}
		} else if err != nil || len(list) != 1 || list[0].word != c.word {
			t.Errorf("%.40s: %v %v, want %q", c.json, list, err, c.word)
		}
	}
}

// Where the context ends while a shard is read, the rest of it is not.
func TestScanEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tar")
	archive(t, file, "1.jpg", "PIC", "1.cls", "1")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if list, err := scan(ctx, file, ""); !errors.Is(err, gone) {
		t.Errorf("%v %v", list, err)
	}
}

// A member whose bytes do not all lie in the archive is not read from elsewhere.
func TestMembersWithin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.tar")
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	body := make([]byte, 512+100)
	copy(body, "1\n900\n100\n") // a region of 100 bytes after a hole
	h := &tar.Header{Name: "1.png", Mode: 0o644, Size: int64(len(body)), Format: tar.FormatPAX,
		PAXRecords: map[string]string{"SET.sparse.major": "1", "SET.sparse.minor": "0", "SET.sparse.realsize": "1000", "SET.sparse.name": "1.png"}}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	holes := bytes.ReplaceAll(buf.Bytes(), []byte("SET.sparse"), []byte("GNU.sparse")) // which the writer does not write
	if got, err := tar.NewReader(bytes.NewReader(holes)).Next(); err != nil || got.Size != 1000 {
		t.Fatalf("the archive has no sparse member: %+v, %v", got, err)
	}
	whole := archive(t, "", "1.cls", "1", "1.jpg", "PIC")
	for want, raw := range map[string][]byte{
		"1.png is a sparse member": append(holes[:len(holes)-1024:len(holes)-1024], archive(t, "", "1.cls", "1")...),
		"1.jpg has 65289 bytes, but the archive ends 300 bytes after its start": whole[:3*512+300],
	} {
		if err := os.WriteFile(file, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if list, err := scan(t.Context(), file, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v, want %q", list, err, want)
		}
	}
}
