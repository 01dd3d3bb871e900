package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"
)

// MaxHeader is the size of the largest header to read or write, as in the reference implementation.
const MaxHeader = 100_000_000

const metadataKey = "__metadata__"

// Tensor describes a tensor and, in a file that was read, its place.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
	Begin int64 // offset into the data section; set by the reader
	End   int64
}

// Bytes is the size of the tensor, or -1 if its shape or dtype is invalid.
func (t Tensor) Bytes() int64 {
	n := t.DType.Size()
	if n == 0 {
		return -1
	}
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return -1
		}
		n *= d
	}
	return n
}

// header is a validated header.
type header struct {
	tensors []Tensor // in the order of the data
	meta    map[string]string
	start   int64 // of the data section in the file
}

type entry struct {
	DType   *DType   `json:"dtype"`
	Shape   *[]int64 `json:"shape"`
	Offsets *[]int64 `json:"data_offsets"`
}

// readHeader reads and validates the header of a file of the given size.
func readHeader(r io.ReaderAt, size int64) (header, error) {
	var h header
	var prefix [8]byte
	if size < 8 {
		return h, fmt.Errorf("the file has %d bytes, fewer than the 8 of the header's length", size)
	}
	if err := readFull(r, prefix[:], 0); err != nil {
		return h, fmt.Errorf("read the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader {
		return h, fmt.Errorf("the header has %d bytes, above the limit of %d\nhint: check that the file is in safetensors format", n, MaxHeader)
	}
	if int64(n) > size-8 {
		return h, fmt.Errorf("the header of %d bytes does not fit into the file of %d bytes: the file is truncated", n, size)
	}
	raw := make([]byte, n)
	if err := readFull(r, raw, 8); err != nil {
		return h, fmt.Errorf("read the header: %w", err)
	}
	if n == 0 || raw[0] != '{' {
		return h, errors.New("the header does not begin with {\nhint: check that the file is in safetensors format")
	}
	h.start = 8 + int64(n)
	if err := h.parse(raw); err != nil {
		return h, err
	}
	return h, h.checkCover(size - h.start)
}

func readFull(r io.ReaderAt, dst []byte, at int64) error {
	n, err := r.ReadAt(dst, at)
	if n == len(dst) {
		return nil // ReadAt may return EOF at the very end
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// parse walks the top level token by token, because a map would hide duplicate names.
func (h *header) parse(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return fmt.Errorf("header: %w", err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return fmt.Errorf("header: duplicate name %q", name)
		}
		seen[name] = true
		if name == metadataKey {
			if err := dec.Decode(&h.meta); err != nil {
				return fmt.Errorf("header: %s: %w", metadataKey, err)
			}
			continue
		}
		var e entry
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("header: tensor %q: %w", name, err)
		}
		t, err := e.tensor(name)
		if err != nil {
			return fmt.Errorf("header: tensor %q: %w", name, err)
		}
		h.tensors = append(h.tensors, t)
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if rest := bytes.TrimLeft(raw[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("header: %d bytes after the closing brace", len(rest))
	}
	return nil
}

func (e entry) tensor(name string) (Tensor, error) {
	var t Tensor
	if e.DType == nil || e.Shape == nil || e.Offsets == nil || len(*e.Offsets) != 2 {
		return t, errors.New("must have dtype, shape and two data_offsets")
	}
	t = Tensor{name, *e.DType, *e.Shape, (*e.Offsets)[0], (*e.Offsets)[1]}
	if t.DType.Size() == 0 {
		return t, fmt.Errorf("unknown dtype %q", t.DType)
	}
	size := t.Bytes()
	if size < 0 {
		return t, fmt.Errorf("the shape %v is invalid", t.Shape)
	}
	if t.Begin < 0 || t.End < t.Begin || t.End-t.Begin != size {
		return t, fmt.Errorf("offsets %d…%d do not hold the %d bytes of %s%v", t.Begin, t.End, size, t.DType, t.Shape)
	}
	return t, nil
}

// checkCover sorts the tensors by offset and checks that they cover the data exactly.
func (h *header) checkCover(data int64) error {
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for _, t := range h.tensors {
		switch {
		case t.Begin > at:
			return fmt.Errorf("%d bytes before tensor %q belong to no tensor", t.Begin-at, t.Name)
		case t.Begin < at:
			return fmt.Errorf("tensor %q overlaps the previous one", t.Name)
		}
		at = t.End
	}
	if at != data {
		return fmt.Errorf("the tensors take %d bytes, but the file has %d: it is truncated or has trailing data", at, data)
	}
	return nil
}

// plan sorts tensors into the writer's order and assigns their offsets.
func plan(tensors []Tensor) ([]Tensor, error) {
	out := slices.Clone(tensors)
	slices.SortStableFunc(out, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.DType.rank(), b.DType.rank()), cmp.Compare(a.Name, b.Name))
	})
	at, seen := int64(0), map[string]bool{}
	for i := range out {
		t := &out[i]
		n := t.Bytes()
		switch {
		case t.Name == metadataKey || seen[t.Name]:
			return nil, fmt.Errorf("safetensors: the name %q is reserved or duplicate", t.Name)
		case !utf8.ValidString(t.Name): // JSON would replace invalid UTF-8, and two names might become one
			return nil, fmt.Errorf("safetensors: the name %q is not UTF-8", t.Name)
		case n < 0 || n > math.MaxInt64-at:
			return nil, fmt.Errorf("safetensors: tensor %q: %s%v is invalid", t.Name, t.DType, t.Shape)
		}
		seen[t.Name] = true
		t.Begin, t.End = at, at+n
		at = t.End
	}
	return out, nil
}

// encode makes the bytes before the data. The JSON is written by hand because the order of names is the order of the data.
func encode(tensors []Tensor, meta map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	put := func(name string, v any) error {
		if b.Len() > 9 {
			b.WriteByte(',')
		}
		for i, x := range []any{name, v} {
			raw, err := json.Marshal(x)
			if err != nil {
				return fmt.Errorf("safetensors: header: %w", err)
			}
			if i == 1 {
				b.WriteByte(':')
			}
			b.Write(raw)
		}
		return nil
	}
	if len(meta) > 0 {
		if err := put(metadataKey, meta); err != nil {
			return nil, err
		}
	}
	for _, t := range tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int64{} // a scalar is [], not null
		}
		if err := put(t.Name, entry{&t.DType, &shape, &[]int64{t.Begin, t.End}}); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > MaxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes exceeds the limit of %d", b.Len()-8, MaxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), nil
}
