package images

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"

	"github.com/gotrain/gotrain/train/foreign"
)

// Layout of a packed shard: records of one size, with nothing before, between or after them. A record is the label as little-endian
// int32, then Channels × Height × Width bytes, plane after plane (R, G, B), rows from the top. So record i begins at i·RecordBytes, and a
// rank reads only its own.
type Layout struct {
	Channels int      `json:"channels"` // 1 or 3
	Height   int      `json:"height"`
	Width    int      `json:"width"`
	Classes  []string `json:"classes,omitempty"` // names by label
}

// RecordBytes is the size of a record.
func (l Layout) RecordBytes() int64 { return 4 + int64(l.Channels)*int64(l.Height)*int64(l.Width) }

// Check rejects impossible sizes.
func (l Layout) Check() error {
	if l.Channels != 1 && l.Channels != 3 {
		return fmt.Errorf("images: packed pictures must have 1 or 3 channels, got %d", l.Channels)
	}
	return checkSize(l.Width, l.Height, 0)
}

// Header describes a set of shards: a JSON file in the same folder, written by Packer. It is optional; without it the layout must be given.
type Header struct {
	Format string  `json:"format"` // packedFormat
	Layout         // inlined
	Shards []Shard `json:"shards"`
}

// Shard is one file of a set.
type Shard struct {
	File    string `json:"file"` // in the header's folder
	Records int64  `json:"records"`
}

// maxHeader is more than the names of a million classes need.
const maxHeader = 64 << 20

const packedFormat = "gotrain-packed-1"

// ParseHeader decodes and checks a header.
func ParseHeader(raw []byte) (*Header, error) {
	var h Header
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("header of packed pictures: %w", err)
	}
	if h.Format != packedFormat {
		return nil, fmt.Errorf("header of packed pictures has format %q, want %q", h.Format, packedFormat)
	}
	if err := h.Layout.Check(); err != nil {
		return nil, err
	}
	if len(h.Shards) == 0 {
		return nil, errors.New("header of packed pictures lists no shards")
	}
	for i, s := range h.Shards {
		if s.File == "" || s.File != filepath.Base(s.File) || s.File == "." || s.File == ".." || s.Records < 0 || s.Records > 1<<40 {
			return nil, fmt.Errorf("header of packed pictures: shard %d is %q with %d records", i, s.File, s.Records)
		}
	}
	return &h, nil
}

// headerName is the path of the header of a path or pattern: DIR/imagenet_train.json for DIR/imagenet_train.bin and for
// DIR/imagenet_train-*.bin.
func headerName(pattern string) string {
	dir, base := filepath.Split(pattern)
	if i := strings.IndexAny(base, "*?["); i >= 0 {
		base = base[:i]
	} else {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	return dir + strings.TrimRight(base, "-_.") + ".json"
}

// PackedOptions configures how packed pictures become samples.
type PackedOptions struct {
	Transform Transform        // nil: as they are
	Augment   augment.Pipeline // changes the pixels after the transform
	Norm      Norm
	// Layout is required if there is no header. If there is one, non-zero fields must agree with it.
	Layout Layout
}

// Packed is a data.Source of packed pictures, read record by record with pread, so that a set may be larger than memory. Fields: image f32[C H W], label i32.
type Packed struct {
	pattern string
	layout  Layout
	shards  []shard
	n       int
	classes []string
	bufs    pool[[]byte]
	*planar
}

type shard struct {
	f     *os.File
	first int // index of its first record
}

// OpenPacked opens the shards that a path or a pattern of foreign.Glob names ("/data/imagenet_train.bin", "/data/train-*.bin"), in alphabetical order. A
// shard that does not end on a record, a shard that the header lists and that is missing, and one with another number of records are
// errors. Close it when no loader uses it any more.
func OpenPacked(pattern string, o PackedOptions) (_ *Packed, err error) {
	names, err := foreign.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("images: pattern %q: %w", pattern, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("images: no file matches %s", pattern)
	}
	p := &Packed{pattern: pattern, layout: o.Layout}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	header, err := readHeader(headerName(pattern))
	if err != nil {
		return nil, err
	}
	if header != nil {
		if p.layout, err = o.Layout.agree(header.Layout, headerName(pattern)); err != nil {
			return nil, err
		}
	} else if o.Layout.Channels == 0 || o.Layout.Height == 0 || o.Layout.Width == 0 {
		return nil, fmt.Errorf("images: %s has no header %s\nhint: specify the layout: channels, height, width", pattern, headerName(pattern))
	}
	if err := p.layout.Check(); err != nil {
		return nil, err
	}
	if err := p.open(names, header); err != nil {
		return nil, err
	}
	p.classes = p.layout.Classes
	if p.planar, err = newPlanar(p.layout.Channels, p.layout.Height, p.layout.Width, p.layout.Channels, o.Transform, o.Augment, o.Norm); err != nil {
		return nil, err
	}
	return p, nil
}

func readHeader(name string) (*Header, error) {
	raw, err := foreign.ReadFile(name, maxHeader)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	h, err := ParseHeader(raw)
	if err != nil {
		return nil, fmt.Errorf("images: %s: %w", name, err)
	}
	return h, nil
}

// agree merges the requested layout with the header's.
func (l Layout) agree(h Layout, name string) (Layout, error) {
	for _, x := range []struct {
		what     string
		ask, has int
	}{{"channels", l.Channels, h.Channels}, {"height", l.Height, h.Height}, {"width", l.Width, h.Width}} {
		if x.ask != 0 && x.ask != x.has {
			return h, fmt.Errorf("images: %s is given as %d, but %s has %d", x.what, x.ask, name, x.has)
		}
	}
	if l.Classes != nil {
		h.Classes = l.Classes
	}
	return h, nil
}

// open opens the shards and counts their records.
func (p *Packed) open(names []string, h *Header) error {
	listed := map[string]int64{}
	if h != nil {
		for _, s := range h.Shards {
			listed[s.File] = s.Records
			if path := filepath.Join(filepath.Dir(p.pattern), s.File); !slices.Contains(names, path) && !slices.Contains(names, filepath.Clean(path)) {
				return fmt.Errorf("images: shard %s is listed in %s, but does not match %s or is missing", s.File, headerName(p.pattern), p.pattern)
			}
		}
	}
	size := p.layout.RecordBytes()
	for _, name := range names {
		f, err := foreign.Open(name)
		if err != nil {
			return fmt.Errorf("images: %w", err)
		}
		p.shards = append(p.shards, shard{f, p.n})
		st, err := f.Stat()
		if err != nil {
			return fmt.Errorf("images: %w", err)
		}
		records := st.Size() / size
		if rest := st.Size() % size; rest != 0 {
			return fmt.Errorf(
				"images: %s: record %d, which begins at byte %d, is cut off: the file ends at byte %d, %d bytes short\nhint: the copy is incomplete, or the "+
					"layout (%d x %d x %d, %d bytes a record) is not this file's",
				name,
				records,
				records*size,
				st.Size(),
				size-rest,
				p.layout.Channels,
				p.layout.Height,
				p.layout.Width,
				size,
			)
		}
		if want, ok := listed[filepath.Base(name)]; h != nil && (!ok || want != records) {
			return fmt.Errorf(
				"images: %s has %d records, but %s lists %d\nhint: the copy is incomplete or from another packing",
				name,
				records,
				headerName(p.pattern),
				want,
			)
		}
		p.n += int(records)
	}
	if p.n == 0 {
		return fmt.Errorf("images: %s holds no records", p.pattern)
	}
	return nil
}

// Name is "packed PATTERN".
func (p *Packed) Name() string { return "packed " + p.pattern }

// Len is the number of records of all shards.
func (p *Packed) Len() int { return p.n }

// Classes are the names by label, or nil if neither the header nor the options give them.
func (p *Packed) Classes() []string { return p.classes }

// Layout is that of the records.
func (p *Packed) Layout() Layout { return p.layout }

// Fingerprint hashes names and sizes of the shards, the layout, and the first and last record of each.
func (p *Packed) Fingerprint() (string, error) {
	h := fnv.New64a()
	fmt.Fprintln(h, p.layout)
	buf := make([]byte, p.layout.RecordBytes())
	for i, s := range p.shards {
		end := p.n
		if i+1 < len(p.shards) {
			end = p.shards[i+1].first
		}
		fmt.Fprintln(h, filepath.Base(s.f.Name()), end-s.first)
		for _, k := range []int{0, end - s.first - 1} {
			if k < 0 {
				continue
			}
			if _, err := s.f.ReadAt(buf, int64(k)*int64(len(buf))); err != nil {
				return "", fmt.Errorf("images: %w", err)
			}
			h.Write(buf)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// Load reads record i. A label that no class has is an error that names file and byte.
func (p *Packed) Load(_ context.Context, r *data.Rand, i int, dst [][]byte) error {
	size := p.layout.RecordBytes()
	buf := p.bufs.get()
	if buf == nil {
		b := make([]byte, size)
		buf = &b
	}
	defer p.bufs.put(buf)
	k, found := slices.BinarySearchFunc(p.shards, i, func(s shard, i int) int { return cmp.Compare(s.first, i) })
	if !found {
		k-- // the last shard that begins before i
	}
	for k+1 < len(p.shards) && p.shards[k+1].first == i { // empty shards begin at the same index as the next one
		k++
	}
	s := p.shards[k]
	at := int64(i-s.first) * size
	if n, err := s.f.ReadAt(*buf, at); n < len(*buf) {
		return fmt.Errorf("%s: record at byte %d: read %d of %d bytes: %w", s.f.Name(), at, n, size, err)
	}
	label := int32(binary.LittleEndian.Uint32(*buf))
	if label < 0 {
		return fmt.Errorf("%s: the record at byte %d has the negative label %d", s.f.Name(), at, label)
	}
	if p.classes != nil && int(label) >= len(p.classes) {
		return fmt.Errorf("%s: the record at byte %d has label %d, but there are %d classes", s.f.Name(), at, label, len(p.classes))
	}
	p.draw((*buf)[4:], r, dst[0])
	binary.NativeEndian.PutUint32(dst[1], uint32(label))
	return nil
}

// Close closes the shards. Idempotent.
func (p *Packed) Close() error {
	var errs []error
	for _, s := range p.shards {
		if err := s.f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
