package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file makes a file from a header as text; %d bytes of data follow.
func file(head string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	out = append(out, head...)
	return append(out, make([]byte, data)...)
}

func read(raw []byte) (*File, error) { return New("test", bytes.NewReader(raw), int64(len(raw))) }

func payload(t Tensor) []byte {
	out := make([]byte, t.Bytes())
	for i := range out {
		out[i] = byte(len(t.Name)*31 + i*7)
	}
	return out
}

var some = []Tensor{
	{Name: "b", DType: F32, Shape: []int64{2, 3}},
	{Name: "flags", DType: Bool, Shape: []int64{5}},
	{Name: "a", DType: F32, Shape: nil},
	{Name: "half", DType: BF16, Shape: []int64{3}},
	{Name: "wide", DType: F64, Shape: []int64{1}},
	{Name: "naïve \"x\"", DType: I64, Shape: []int64{0, 4}},
}

func write(t testing.TB, tensors []Tensor, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, Write(&b, tensors, meta, func(x Tensor, w io.Writer) error {
		p := payload(x)
		for len(p) > 0 { // in pieces of three
			n := min(3, len(p))
			if _, err := w.Write(p[:n]); err != nil {
				return err
			}
			p = p[n:]
		}
		return nil
	}))
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	meta := map[string]string{"format": "pt", "step": "7"}
	raw := write(t, some, meta)
	if n, err := Size(some, meta); err != nil || n != int64(len(raw)) {
		t.Errorf("Size is %d (%v), the file has %d bytes", n, err, len(raw))
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	must(t, os.WriteFile(path, raw, 0o666))
	mapped, err := Open(path)
	must(t, err)
	streamed, err := read(raw)
	must(t, err)
	for _, f := range []*File{mapped, streamed} {
		var names []string
		for _, x := range f.Tensors() {
			names = append(names, x.Name)
			got, err := f.Bytes(x.Name)
			must(t, err)
			if !bytes.Equal(got, payload(x)) {
				t.Errorf("%s: %v, want %v", x.Name, got, payload(x))
			}
			dst := make([]byte, x.Bytes())
			must(t, f.Read(x.Name, dst))
			if !bytes.Equal(dst, got) {
				t.Errorf("%s: Read and Bytes differ", x.Name)
			}
		}
		if got, want := fmt.Sprintf("%q", names), `["wide" "naïve \"x\"" "a" "b" "half" "flags"]`; got != want {
			t.Errorf("order is %s, want %s", got, want)
		}
		if f.Metadata()["step"] != "7" || f.h.start%8 != 0 {
			t.Errorf("metadata %v, data start at %d", f.Metadata(), f.h.start)
		}
		if err := f.Read("b", make([]byte, 3)); err == nil || !strings.Contains(err.Error(), "24 bytes, but the destination has 3") {
			t.Errorf("wrong destination gives %v", err)
		}
		if _, err := f.Bytes("c"); err == nil || !strings.Contains(err.Error(), `no tensor "c" among its 6`) {
			t.Errorf("missing tensor gives %v", err)
		}
	}
	must(t, mapped.Close())
	must(t, mapped.Close())
	if err := mapped.Read("a", make([]byte, 4)); err == nil {
		t.Error("a closed file can be read")
	}
	shuffled := slices.Clone(some)
	slices.Reverse(shuffled)
	if !bytes.Equal(raw, write(t, shuffled, meta)) {
		t.Error("the order of the argument changes the file")
	}
}

// The header that the reference implementation writes for one f32 matrix.
func TestGoldenBytes(t *testing.T) {
	got := write(t, []Tensor{{Name: "w", DType: F32, Shape: []int64{2, 2}}}, nil)
	want := file(`{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}       `, 0)
	if !bytes.Equal(got[:len(want)], want) {
		t.Errorf("header is\n%q, want\n%q", got[:len(want)], want)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	one := func(s string) string { return `{"w":` + s + `}` }
	huge := binary.LittleEndian.AppendUint64(nil, MaxHeader+1)
	for _, c := range []struct {
		name, want string
		raw        []byte
	}{
		{"empty", "fewer than the 8", nil},
		{"huge header", "above the limit", huge},
		{"minus one", "above the limit", binary.LittleEndian.AppendUint64(nil, math.MaxUint64)},
		{"cut header", "truncated", file(`{"w":`, 0)[:10]},
		{"no header", "begin with {", file("", 0)},
		{"text", "begin with {", file("hello", 0)},
		{"bad json", "header:", file(`{"w":`, 0)},
		{"twice", `duplicate name "w"`, file(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2)},
		{"dtype", `unknown dtype "F7"`, file(one(`{"dtype":"F7","shape":[1],"data_offsets":[0,1]}`), 1)},
		{"fields", "must have dtype", file(one(`{"dtype":"U8","shape":[1]}`), 1)},
		{"null", "must have dtype", file(one(`null`), 0)},
		{"three offsets", "must have dtype", file(one(`{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}`), 1)},
		{"negative shape", "is invalid", file(one(`{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}`), 1)},
		{"overflow", "is invalid", file(one(`{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}`), 0)},
		{"size", "do not hold the 4 bytes", file(one(`{"dtype":"F32","shape":[1],"data_offsets":[0,3]}`), 3)},
		{"backwards", "do not hold", file(one(`{"dtype":"U8","shape":[1],"data_offsets":[1,0]}`), 1)},
		{"hole", "belong to no tensor", file(one(`{"dtype":"U8","shape":[1],"data_offsets":[1,2]}`), 2)},
		{"overlap", "overlaps", file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3)},
		{"cut data", "truncated or has trailing data", file(one(`{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`), 3)},
		{"appended", "truncated or has trailing data", file(one(`{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`), 5)},
		{"after the brace", "after the closing brace", file(`{} x`, 0)},
		{"metadata", "__metadata__", file(`{"__metadata__":{"a":1}}`, 0)},
	} {
		if _, err := read(c.raw); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := read(file(`{}`, 0)); err != nil {
		t.Errorf("a file without tensors is refused: %v", err)
	}
}

func TestWriterRefuses(t *testing.T) {
	var b bytes.Buffer
	none := func(Tensor, io.Writer) error { return nil }
	w := Tensor{Name: "w", DType: U8, Shape: []int64{2}}
	for _, c := range []struct {
		want    string
		tensors []Tensor
		data    func(Tensor, io.Writer) error
	}{
		{"2 of its 2 bytes are missing", []Tensor{w}, none},
		{"1 bytes more than the tensor's size", []Tensor{w}, func(_ Tensor, w io.Writer) error { _, err := w.Write(make([]byte, 3)); return err }},
		{"reserved or duplicate", []Tensor{w, w}, none},
		{"reserved", []Tensor{{Name: "__metadata__", DType: U8}}, none},
		{"not UTF-8", []Tensor{{Name: "\xff", DType: U8}}, none},
		{"is invalid", []Tensor{{Name: "x", DType: "F8"}}, none},
		{"disk on fire", []Tensor{w}, func(Tensor, io.Writer) error { return errors.New("disk on fire") }},
	} {
		if err := Write(&b, c.tensors, nil, c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestFloat32s(t *testing.T) {
	var b bytes.Buffer
	tensors := []Tensor{{Name: "f16", DType: F16, Shape: []int64{7}}, {Name: "bf16", DType: BF16, Shape: []int64{2}},
		{Name: "f64", DType: F64, Shape: []int64{1}}, {Name: "f32", DType: F32, Shape: []int64{1}}, {Name: "i8", DType: I8, Shape: []int64{1}}}
	must(t, Write(&b, tensors, nil, func(x Tensor, w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, map[string]any{
			"f16":  []uint16{0x3c00, 0xc000, 0x0001, 0x83ff, 0x7bff, 0x7c00, 0x8000},
			"bf16": []uint16{0x3f80, 0xff80}, "f64": math.Pi, "f32": float32(1.5), "i8": int8(1),
		}[x.Name])
	}))
	f, err := read(b.Bytes())
	must(t, err)
	for name, want := range map[string]string{
		"f16":  "[1 -2 5.9604645e-08 -6.097555e-05 65504 +Inf -0]",
		"bf16": "[1 -Inf]", "f64": "[3.1415927]", "f32": "[1.5]",
	} {
		got, err := f.Float32s(name)
		must(t, err)
		if fmt.Sprint(got) != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	if _, err := f.Float32s("i8"); err == nil {
		t.Error("I8 is read as float")
	}
}

func TestSet(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, raw []byte) { must(t, os.WriteFile(filepath.Join(dir, name), raw, 0o666)) }
	put("model-00001-of-00002.safetensors", write(t, some[:2], nil))
	put("model-00002-of-00002.safetensors", write(t, some[2:3], nil))
	if _, err := OpenSet(dir); err == nil || !strings.Contains(err.Error(), "contains 2 .safetensors files") {
		t.Errorf("a directory without index gives %v", err)
	}
	put(
		IndexName,
		[]byte(
			`{"metadata":{"total_size":33},"weight_map":{"a":"model-00002-of-00002.safetensors","b":"model-00001-of-00002.safetensors",
				"flags":"model-00001-of-00002.safetensors"}}`,
		),
	)
	s, err := OpenSet(dir)
	must(t, err)
	if got := fmt.Sprint(s.Names()); got != "[a b flags]" {
		t.Errorf("names are %s", got)
	}
	for _, x := range some[:3] {
		got, f, ok := s.Lookup(x.Name)
		if !ok || !slices.Equal(got.Shape, x.Shape) {
			t.Fatalf("%s: found %v %v", x.Name, ok, got)
		}
		raw, err := f.Bytes(x.Name)
		must(t, err)
		if !bytes.Equal(raw, payload(x)) {
			t.Errorf("%s differs", x.Name)
		}
	}
	if _, err := s.Float32s("zzz"); err == nil {
		t.Error("a missing tensor is read")
	}
	must(t, s.Close())
	for want, ix := range map[string]string{
		"outside the directory": `{"weight_map":{"a":"../x.safetensors"}}`,
		"is not in":             `{"weight_map":{"zz":"model-00002-of-00002.safetensors"}}`,
		"no weight_map":         `{}`,
		"no such file":          `{"weight_map":{"a":"gone.safetensors"}}`,
	} {
		put(IndexName, []byte(ix))
		if _, err := OpenSet(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("index %s: error %v, want one with %q", ix, err, want)
		}
	}
}

// For any bytes, the reader neither panics nor accepts what cannot be indexed; what it accepts can be written to an equivalent file.
func FuzzRead(f *testing.F) {
	f.Add(write(f, some, map[string]string{"a": "b"}))
	f.Add(file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3))
	f.Add(file(`{} `, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := read(raw)
		if err != nil {
			return
		}
		total := int64(0)
		for _, ten := range x.Tensors() {
			b, err := x.Bytes(ten.Name)
			must(t, err)
			total += int64(len(b))
			if ten.Name == metadataKey {
				t.Fatal("metadata is a tensor")
			}
			if got, _ := x.Lookup(ten.Name); got.Begin != ten.Begin {
				t.Fatalf("%q is found elsewhere", ten.Name)
			}
		}
		if total != int64(len(raw))-x.h.start {
			t.Fatalf("tensors have %d of %d bytes", total, int64(len(raw))-x.h.start)
		}
		var out bytes.Buffer
		must(t, Write(&out, x.Tensors(), x.Metadata(), func(ten Tensor, w io.Writer) error {
			b, err := x.Bytes(ten.Name)
			if err == nil {
				_, err = w.Write(b)
			}
			return err
		}))
		y, err := read(out.Bytes())
		must(t, err)
		for _, ten := range x.Tensors() {
			a, _ := x.Bytes(ten.Name)
			b, err := y.Bytes(ten.Name)
			must(t, err)
			if !bytes.Equal(a, b) {
				t.Fatalf("%q changed", ten.Name)
			}
		}
	})
}
