package images

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/train/data"
)

var tinyLayout = Layout{Channels: 3, Height: 2, Width: 3, Classes: []string{"a", "b", "c", "d", "e", "f", "g"}}

// pack writes n records: label i%7, bytes i*18+k.
func pack(t testing.TB, n int, perShard int64) (prefix string) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "set")
	p, err := NewPacker(prefix, tinyLayout, perShard)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		pix := make([]byte, 18)
		for k := range pix {
			pix[k] = byte(i*18 + k)
		}
		if err := p.Append(i%7, pix); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return prefix
}

func TestPackedRoundTrip(t *testing.T) {
	for _, perShard := range []int64{0, 1, 4, 5} {
		prefix := pack(t, 10, perShard)
		p, err := OpenPacked(prefix+"-*.bin", PackedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.Len() != 10 || !slices.Equal(p.Classes(), tinyLayout.Classes) || p.Fields()[0].String() != "image f32[3 2 3]" {
			t.Fatalf("%d records, %v, %v", p.Len(), p.Classes(), p.Fields())
		}
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				x, y := loadOne(t, p, i)
				if int(y) != i%7 {
					t.Errorf("record %d: label %d", i, y)
				}
				for k, v := range x {
					if want := float32(float64(byte(i*18+k)) / 255); v != want {
						t.Errorf("record %d value %d: %v, want %v", i, k, v, want)
						break
					}
				}
			})
		}
		wg.Wait()
	}
}

// imagenet_train.bin without any header: the layout comes from the caller, records from plain offsets.
// Shards are found in a folder whose name looks like a pattern, beside one that it would match.
func TestPackedInFoldersLikePatterns(t *testing.T) {
	prefix, other := pack(t, 10, 4), pack(t, 3, 4)
	root := t.TempDir()
	for name, from := range map[string]string{"a[1]": prefix, "a1": other} {
		if err := os.Rename(filepath.Dir(from), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenPacked(filepath.Join(root, "a[1]", "set-*.bin"), PackedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Len() != 10 {
		t.Errorf("%d records", p.Len())
	}
	if _, err := NewPacker(filepath.Join(root, "a[1]", "set"), tinyLayout, 4); err == nil {
		t.Error("a set that exists is packed over")
	}
}

func TestPackedWithoutHeader(t *testing.T) {
	dir := t.TempDir()
	var raw []byte
	for i := range 5 {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(100+i))
		raw = append(raw, make([]byte, 12)...)
		raw[len(raw)-1] = byte(i)
	}
	name := filepath.Join(dir, "imagenet_train.bin")
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPacked(name, PackedOptions{}); err == nil || !strings.Contains(err.Error(), "specify the layout") ||
		!strings.Contains(err.Error(), "imagenet_train.json") {
		t.Errorf("without a layout: %v", err)
	}
	p, err := OpenPacked(name, PackedOptions{Layout: Layout{Channels: 3, Height: 2, Width: 2}, Transform: PadCrop{Width: 2, Height: 2, Flip: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x, y := loadOne(t, p, 3)
	if y != 103 || max(x[10], x[11]) != float32(3./255) || p.Classes() != nil {
		t.Errorf("label %d, pixels %v", y, x)
	}

	// One class too few.
	q, err := OpenPacked(name, PackedOptions{Layout: Layout{Channels: 3, Height: 2, Width: 2, Classes: make([]string, 104)}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	err = q.Load(context.Background(), data.NewRand(0), 4, [][]byte{make([]byte, 48), make([]byte, 4)})
	if err == nil || !strings.Contains(err.Error(), "imagenet_train.bin: the record at byte 64 has label 104") {
		t.Errorf("label beyond the classes: %v", err)
	}

	// A tail that is cut off names file and byte.
	if err := os.Truncate(name, int64(len(raw)-1)); err != nil {
		t.Fatal(err)
	}
	_, err = OpenPacked(name, PackedOptions{Layout: Layout{Channels: 3, Height: 2, Width: 2}})
	if err == nil ||
		!strings.Contains(err.Error(), "imagenet_train.bin: record 4, which begins at byte 64, is cut off: the file ends at byte 79, 1 bytes short") {
		t.Errorf("truncated: %v", err)
	}
	// Shortened while open.
	if err := os.Truncate(name, 70); err != nil {
		t.Fatal(err)
	}
	err = p.Load(context.Background(), data.NewRand(0), 4, [][]byte{make([]byte, 48), make([]byte, 4)})
	if err == nil || !strings.Contains(err.Error(), "record at byte 64: read 6 of 16 bytes") {
		t.Errorf("shortened: %v", err)
	}
}

func TestPackedRefuses(t *testing.T) {
	open := func(prefix string, o PackedOptions) error {
		p, err := OpenPacked(prefix+"-*.bin", o)
		if err == nil {
			p.Close()
		}
		return err
	}
	want := func(name string, err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", name, err, w)
			}
		}
	}
	want("nothing", open(filepath.Join(t.TempDir(), "x"), PackedOptions{}), "no file matches")
	want("pattern", open(filepath.Join(t.TempDir(), "["), PackedOptions{}), "pattern")

	prefix := pack(t, 10, 4)
	want("other layout", open(prefix, PackedOptions{Layout: Layout{Height: 3}}), "height is given as 3", "has 2")
	if err := os.Remove(prefix + "-00001.bin"); err != nil {
		t.Fatal(err)
	}
	want("missing shard", open(prefix, PackedOptions{}), "set-00001.bin is listed")

	prefix = pack(t, 10, 4)
	if err := os.Truncate(prefix+"-00001.bin", 22); err != nil {
		t.Fatal(err)
	}
	want("lost records", open(prefix, PackedOptions{}), "has 1 records", "lists 4")

	prefix = pack(t, 10, 4)
	if err := os.WriteFile(prefix+".json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	want("broken header", open(prefix, PackedOptions{}), "set.json", "header of packed pictures")

	if _, err := NewPacker(prefix, tinyLayout, 0); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("packing over an old set: %v", err)
	}
	p, err := NewPacker(filepath.Join(t.TempDir(), "n"), tinyLayout, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []error{p.Append(7, make([]byte, 18)), p.Append(-1, make([]byte, 18)), p.Append(0, make([]byte, 17))} {
		if bad == nil {
			t.Error("a wrong record passes")
		}
	}
	want("empty set", p.Close(), "nothing was packed")
}

func TestPackAFolder(t *testing.T) {
	root := tree(t, map[string]string{"cat/1.jpg": "png_named_jpg.jpg", "cup/1.png": "rgba.png", "cup/2.gif": "gif_named_jpg.jpg"})
	prefix := filepath.Join(t.TempDir(), "pets")
	if err := Pack(context.Background(), root, FolderOptions{}, prefix, 32, 2); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPacked(prefix+"-*.bin", PackedOptions{Norm: ImageNet})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f, err := NewFolder(root, FolderOptions{Transform: ResizeCrop{Short: 32, Width: 32, Height: 32}, Norm: ImageNet})
	if err != nil {
		t.Fatal(err)
	}
	if p.Len() != f.Len() || !slices.Equal(p.Classes(), f.Classes()) {
		t.Fatalf("%d pictures of %v", p.Len(), p.Classes())
	}
	for i := range f.Len() {
		a, la := loadOne(t, p, i)
		b, lb := loadOne(t, f, i)
		if la != lb || !slices.Equal(a, b) {
			t.Errorf("picture %d differs from the folder's", i)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Pack(ctx, root, FolderOptions{}, prefix+"2", 32, 2); err == nil {
		t.Error("a cancelled packing succeeds")
	}
}

func TestPackedFingerprint(t *testing.T) {
	print := func(prefix string) string {
		p, err := OpenPacked(prefix+"-*.bin", PackedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s, err := p.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if again := print(pack(t, 10, 4)); print(pack(t, 10, 4)) != again {
		t.Error("equal sets differ")
	}
	if print(pack(t, 10, 4)) == print(pack(t, 11, 4)) {
		t.Error("different sets are equal")
	}
}

func FuzzPackedHeader(f *testing.F) {
	good, _ := json.Marshal(Header{Format: packedFormat, Layout: tinyLayout, Shards: []Shard{{"a.bin", 3}}})
	f.Add(good)
	f.Add([]byte(`{"format":"gotrain-packed-1","channels":3,"height":1e9,"width":-1,"shards":[{"file":"../x","records":-1}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := ParseHeader(raw)
		if err != nil {
			return
		}
		if size := h.RecordBytes(); size < 5 || size > 4+3<<28 {
			t.Errorf("record of %d bytes", size)
		}
		for _, s := range h.Shards {
			if strings.ContainsRune(s.File, filepath.Separator) || s.Records < 0 {
				t.Errorf("shard %+v", s)
			}
		}
	})
}

func TestHeaderName(t *testing.T) {
	for pattern, want := range map[string]string{
		"/d/imagenet_train.bin": "/d/imagenet_train.json", "/d/imagenet_train-*.bin": "/d/imagenet_train.json", "set_0?.bin": "set_0.json", "x": "x.json",
	} {
		if got := headerName(pattern); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

func ExamplePacker() {
	dir, _ := os.MkdirTemp("", "packed")
	defer os.RemoveAll(dir)
	prefix := filepath.Join(dir, "digits")

	p, _ := NewPacker(prefix, Layout{Channels: 1, Height: 2, Width: 2, Classes: []string{"zero", "one"}}, 0)
	p.Append(0, []byte{255, 255, 255, 255})
	p.Append(1, []byte{0, 255, 0, 255})
	if err := p.Close(); err != nil {
		fmt.Println(err)
		return
	}

	src, err := OpenPacked(prefix+"-*.bin", PackedOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer src.Close()
	dst := [][]byte{make([]byte, src.Fields()[0].Bytes()), make([]byte, 4)}
	err = src.Load(context.Background(), data.NewRand(0), 1, dst)
	fmt.Println(src.Len(), src.Fields()[0], data.F32(dst[0]), src.Classes()[data.I32(dst[1])[0]], err)
	// Output: 2 image f32[1 2 2] [0 1 0 1] one <nil>
}
