package tfjs_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/train/checkpoint/tfjs"
	"github.com/gotrain/gotrain/train/foreign"
)

// load reports how much memory a Load allocated, including freed memory.
func load(at string) (uint64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tfjs.Load(context.Background(), at)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// An archive of zeros is rejected before it fills the memory.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	zeros := make([]byte, 50<<20)
	for _, name := range []string{"a.bin", "b.bin", "c.bin"} {
		if err := w.WriteHeader(&tar.Header{Name: "package/ResNet50/" + name, Mode: 0o644, Size: int64(len(zeros))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "bomb.tgz")
	if err := os.WriteFile(at, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if took, err := load(at); !errors.Is(err, foreign.ErrBomb) || took > 600<<20 {
		t.Errorf("%d MB taken: %v", took>>20, err)
	}
}

// Shapes that the files next to the manifest cannot hold allocate no memory.
func TestClaims(t *testing.T) {
	for want, shape := range map[string][]int{"hold only": {1000, 1000, 200}, "more than the whole network": {1000, 1000, 1000}} {
		files := tiny(1).files(5000)
		change(t, files, func(_, _ map[string]any, w []any) { w[0].(map[string]any)["shape"] = shape })
		took, err := load(put(t, files))
		if err == nil || !strings.Contains(err.Error(), want) || took > 8<<20 {
			t.Errorf("%v: %d MB taken: %v", shape, took>>20, err)
		}
	}
	// A manifest of many entries takes a multiple of its size, so its size is limited.
	files := tiny(1).files(5000)
	many, err := json.Marshal(make([]struct{}, 4<<20))
	if err != nil {
		t.Fatal(err)
	}
	files["model.json"] = many
	if took, err := load(put(t, files)); !errors.Is(err, foreign.ErrLarge) || took > 8<<20 {
		t.Errorf("%d MB taken: %v", took>>20, err)
	}
}
