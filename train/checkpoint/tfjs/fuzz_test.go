package tfjs

import (
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"testing"
)

// memory is a source of two files.
type memory struct{ manifest, data []byte }

func (m memory) where(name string) string { return name }

func (m memory) read(name string) ([]byte, error) {
	switch name {
	case manifestFile:
		return m.manifest, nil
	case "w.bin":
		return m.data, nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) size(name string) (int64, error) {
	raw, err := m.read(name)
	return int64(len(raw)), err
}

func FuzzModel(f *testing.F) {
	one := `{"format":"layers-model","weightsManifest":[{"paths":["w.bin"],"weights":[{"name":"a/kernel","shape":[1,2],"dtype":"float32"},
		{"name":"b","shape":[],"dtype":"float32"}]}]}`
	f.Add([]byte(one), make([]byte, 12))
	f.Add([]byte(one), make([]byte, 5))
	f.Add(
		[]byte(
			`{"format":"layers-model","weightsManifest":[{"paths":["../w.bin","w.bin"],"weights":[{"name":"a","shape":[1073741824],"dtype":"float32"}]}]}`,
		),
		[]byte{1},
	)
	f.Fuzz(func(t *testing.T, manifest, data []byte) {
		all, err := readAllTensors(context.Background(), memory{manifest, data})
		if err != nil {
			return
		}
		n := 0
		for name, x := range all {
			have := 1
			for _, d := range x.shape {
				have *= d
			}
			if have != len(x.data) {
				t.Fatalf("%q: %v with %d values", name, x.shape, len(x.data))
			}
			n += 4 * len(x.data)
		}
		if n > len(data)*(1+bytes.Count(manifest, []byte("w.bin"))) {
			t.Fatalf("%d bytes of tensors from %d", n, len(data))
		}
	})
}

func FuzzArchive(f *testing.F) {
	tar := make([]byte, 2048) // a header and data; the checksum is right only for zeros, which end the archive
	f.Add(tar)
	for _, typeflag := range []byte{'0', 'S', 'x', 'L'} {
		h := make([]byte, 1536)
		copy(h, "package/ResNet50/model.json")
		copy(h[100:], "0000644\x00")
		copy(h[124:], "00000000003\x00")
		copy(h[148:], "        ")
		h[156] = typeflag
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, b := range h[:512] {
			sum += int(b)
		}
		copy(
			h[148:],
			[]byte{
				byte('0' + sum>>15&7),
				byte('0' + sum>>12&7),
				byte('0' + sum>>9&7),
				byte('0' + sum>>6&7),
				byte('0' + sum>>3&7),
				byte('0' + sum&7),
				0,
				' ',
			},
		)
		copy(h[512:], "{ }")
		f.Add(h)
	}
	f.Fuzz(func(t *testing.T, tar []byte) {
		var b bytes.Buffer // compressed here, because mutations of the compressed form would hardly ever pass its checksum
		z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression)
		z.Write(tar)
		z.Close()
		src, err := readArchive(context.Background(), "a.tgz", &b)
		if err != nil {
			return
		}
		total := 0
		for _, raw := range src.(*archive).files {
			total += len(raw)
		}
		if total > len(tar) && !bytes.Contains(tar, []byte("GNU.sparse")) && !bytes.ContainsRune(tar, 'S') {
			t.Fatalf("%d bytes from an archive of %d", total, len(tar))
		}
		if _, err := src.read(manifestFile); err != nil {
			t.Fatalf("accepted without a manifest: %v", err)
		}
	})
}
