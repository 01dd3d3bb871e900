package images

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"

	"github.com/gotrain/gotrain/train/foreign"
)

// Tensor is the content of an IDX file of unsigned bytes: the format of MNIST and its relatives.
type Tensor struct {
	Dims []int
	Data []byte
}

// maxIDX bounds what a header may claim: 4 GiB, twenty times the largest of the family.
const maxIDX = 4 << 30

// ReadIDX reads an IDX file: two zero bytes, a type byte (8: unsigned bytes, the only one accepted), the number of dimensions, each dimension
// as a big-endian uint32, then the data, last dimension fastest. gzip is recognised by its first bytes. Missing bytes and
// bytes after the end are errors; memory grows with the actual data, not with what the header claims.
func ReadIDX(r io.Reader) (*Tensor, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	if head, err := br.Peek(2); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		z, err := foreign.Gunzip(br)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return readIDX(z)
	}
	return readIDX(br)
}

func readIDX(r io.Reader) (*Tensor, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return nil, fmt.Errorf("cannot read the IDX header: %w", err)
	}
	if magic[0] != 0 || magic[1] != 0 {
		return nil, fmt.Errorf("not an IDX file: it begins with % x instead of 00 00", magic[:2])
	}
	if magic[2] != 8 {
		return nil, fmt.Errorf("IDX element type %#02x is not unsigned bytes (0x08)", magic[2])
	}
	if magic[3] == 0 || magic[3] > 8 {
		return nil, fmt.Errorf("IDX file with %d dimensions", magic[3])
	}
	t := &Tensor{}
	total := int64(1)
	for i := range int(magic[3]) {
		var d [4]byte
		if _, err := io.ReadFull(r, d[:]); err != nil {
			return nil, fmt.Errorf("IDX header ends in dimension %d: %w", i, err)
		}
		n := int64(binary.BigEndian.Uint32(d[:]))
		t.Dims = append(t.Dims, int(n))
		if n > 0 && total > maxIDX/n {
			return nil, fmt.Errorf("IDX header claims %v elements, more than %d", t.Dims, int64(maxIDX))
		}
		total *= n
	}
	raw, err := readUpTo(r, total)
	n := int64(len(raw))
	switch {
	case err != nil:
		return nil, fmt.Errorf("IDX data, byte %d of %d: %w", n, total, err)
	case n < total:
		return nil, fmt.Errorf("IDX data is truncated at byte %d of %d: %w", n, total, io.ErrUnexpectedEOF)
	case n > total:
		return nil, fmt.Errorf("IDX file has extra bytes after its %d bytes of data (%v)", total, t.Dims)
	}
	t.Data = raw
	return t, nil
}

// readUpTo reads limit bytes and one more, if they are there. The memory grows with what was read and never far beyond limit.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	raw := make([]byte, 0, min(limit+1, 1<<16))
	for {
		n, err := r.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) || int64(len(raw)) > limit {
			return raw, nil
		}
		if err != nil {
			return raw, err
		}
		if len(raw) == cap(raw) {
			grown := make([]byte, len(raw), min(limit+1, 2*int64(len(raw))))
			copy(grown, raw)
			raw = grown
		}
	}
}

// IDXOptions configures how the pictures of IDX files become samples.
type IDXOptions struct {
	Transform Transform        // nil: as stored
	Augment   augment.Pipeline // changes the pixels after the transform
	Norm      Norm             // Mean and Std of channel 0 count for grey; zero: values from 0 to 1
	Channels  int              // 0 or 1: one plane; 3: the grey plane three times, for networks that expect colour
	Classes   []string         // nil: "0", "1", … up to the largest label
}

// IDX is a data.Source of grey pictures held in memory, such as MNIST and Fashion-MNIST. Fields: image f32[Channels H W], label i32.
type IDX struct {
	name    string
	images  *Tensor
	labels  []byte
	classes []string
	*planar
}

// NewIDX reads a file of pictures (dimensions N, H, W) and one of labels (dimension N).
func NewIDX(imagesFile, labelsFile string, o IDXOptions) (*IDX, error) {
	read := func(name string) (*Tensor, error) {
		f, err := foreign.Open(name)
		if err != nil {
			return nil, fmt.Errorf("images: %w", err)
		}
		defer f.Close()
		t, err := ReadIDX(f)
		if err != nil {
			return nil, fmt.Errorf("images: %s: %w", name, err)
		}
		return t, nil
	}
	pics, err := read(imagesFile)
	if err != nil {
		return nil, err
	}
	labels, err := read(labelsFile)
	if err != nil {
		return nil, err
	}
	switch {
	case len(pics.Dims) != 3:
		return nil, fmt.Errorf("images: %s has dimensions %v, want pictures, height, width", imagesFile, pics.Dims)
	case len(labels.Dims) != 1:
		return nil, fmt.Errorf("images: %s has dimensions %v, want one: labels", labelsFile, labels.Dims)
	case pics.Dims[0] != labels.Dims[0]:
		return nil, fmt.Errorf("images: %s has %d pictures but %s has %d labels", imagesFile, pics.Dims[0], labelsFile, labels.Dims[0])
	case len(pics.Data) == 0:
		return nil, fmt.Errorf("images: %s has no pictures (%v)", imagesFile, pics.Dims)
	}
	s := &IDX{name: "idx " + imagesFile, images: pics, labels: labels.Data}
	most := 0
	for i, l := range s.labels {
		most = max(most, int(l))
		if o.Classes != nil && int(l) >= len(o.Classes) {
			return nil, fmt.Errorf("images: %s: label %d of picture %d, but there are %d classes", labelsFile, l, i, len(o.Classes))
		}
	}
	if s.classes = o.Classes; s.classes == nil {
		s.classes = numbers(most + 1)
	}
	if o.Channels == 0 {
		o.Channels = 1
	}
	if s.planar, err = newPlanar(1, pics.Dims[1], pics.Dims[2], o.Channels, o.Transform, o.Augment, o.Norm); err != nil {
		return nil, err
	}
	return s, nil
}

// numbers generates class names for unnamed classes.
func numbers(n int) []string {
	c := make([]string, n)
	for i := range c {
		c[i] = strconv.Itoa(i)
	}
	return c
}

// OpenIDX opens a split ("train" or "test") of a folder with the file names of MNIST.
func OpenIDX(dir, split string, o IDXOptions) (*IDX, error) {
	pictures, labels, err := FindIDX(dir, split)
	if err != nil {
		return nil, err
	}
	return NewIDX(pictures, labels, o)
}

// FindIDX names the files of a split ("train" or "test") in a folder with the file names of MNIST, gzipped or not.
func FindIDX(dir, split string) (imagesFile, labelsFile string, err error) {
	prefix := split
	if split == "test" || split == "val" {
		prefix = "t10k"
	} else if split != "train" {
		return "", "", fmt.Errorf("images: unknown split %q\nhint: use train or test", split)
	}
	var missing error
	find := func(name string) string {
		for _, ext := range []string{"", ".gz"} {
			p := filepath.Join(dir, name+ext)
			_, err := os.Stat(p)
			if err == nil {
				return p
			}
			if !errors.Is(err, fs.ErrNotExist) {
				missing = errors.Join(missing, fmt.Errorf("images: %w", err))
				return ""
			}
		}
		missing = errors.Join(missing, fmt.Errorf("images: %s has neither %s nor %s.gz", dir, name, name))
		return ""
	}
	imagesFile, labelsFile = find(prefix+"-images-idx3-ubyte"), find(prefix+"-labels-idx1-ubyte")
	return imagesFile, labelsFile, missing
}

// Name is "idx FILE".
func (s *IDX) Name() string { return s.name }

// Len is the number of pictures.
func (s *IDX) Len() int { return len(s.labels) }

// Classes are the names by label.
func (s *IDX) Classes() []string { return s.classes }

// Fingerprint hashes all pictures and labels.
func (s *IDX) Fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, s.images.Dims, s.classes)
	h.Write(s.images.Data)
	h.Write(s.labels)
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// Load transforms and normalises picture i.
func (s *IDX) Load(_ context.Context, r *data.Rand, i int, dst [][]byte) error {
	n := s.images.Dims[1] * s.images.Dims[2]
	s.draw(s.images.Data[i*n:][:n], r, dst[0])
	binary.NativeEndian.PutUint32(dst[1], uint32(s.labels[i]))
	return nil
}

// Label is the label of sample i, known without loading it.
func (s *IDX) Label(i int) int { return int(s.labels[i]) }
