package images

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
)

// Options say how encoded pictures (JPEG, PNG or GIF, from a Folder, a List or Shards) become samples.
type Options struct {
	Transform Transform // required
	// Augment changes the pixels after cropping and resizing. The zero value changes nothing.
	Augment augment.Pipeline
	Norm    Norm // zero: values from 0 to 1
	// Classes fixes the labels: the names of the classes by label, usually those of the training set when this is the validation set. Nil: the names that
	// are found, in alphabetical order, as torchvision numbers them.
	Classes []string
	// Listing is what Listing of the same source returned where it was opened, by another rank for example. nil: find the pictures.
	Listing []byte
	// Decoder chooses the JPEG decoder; empty is Auto.
	Decoder Backend
	// MaxPixels rejects larger pictures; 0 is DefaultMaxPixels.
	MaxPixels int
	// Orient applies the EXIF orientation. torchvision's ImageFolder does not, and neither does the default here.
	Orient bool
	// Turned is called for the first picture whose orientation is not applied because Orient is false. It may be nil.
	Turned func(path string)
	// Warn is called for files that are damaged but readable, possibly concurrently. Nil ignores them, as Pillow does.
	Warn func(path, message string)
}

// FolderOptions is the older name of Options.
type FolderOptions = Options

// files is where a source keeps its pictures.
type files interface {
	count() int
	label(i int) int32
	// path names picture i to people: a file, or an archive and the member in it.
	path(i int) string
	// read appends the bytes of picture i to an empty buffer. Errors name it.
	read(i int, buf []byte) ([]byte, error)
}

// encoded is what the sources of encoded pictures have in common. Fields: image f32[3 H W], label i32.
type encoded struct {
	files
	opt     Options
	fields  []data.Field
	planes  []*levels
	pool    pool[scratch]
	backend Backend
	turned  sync.Once // guards the call of Turned
	took    [4]atomic.Int64
}

// open prepares to load from files, which need not be known yet.
func (e *encoded) open(o Options, from files) error {
	if o.Transform == nil {
		return errors.New("images: pictures of many sizes need a transform, which resizes them to one size")
	}
	if err := errors.Join(o.Transform.Check(), o.Norm.Check(), o.Augment.Check()); err != nil {
		return err
	}
	first, err := NewDecoder(o.Decoder)
	if err != nil {
		return err
	}
	e.files, e.opt, e.backend = from, o, first.Backend()
	w, h := o.Transform.Size()
	e.fields = imageFields(3, h, w)
	e.planes = planes(o.Norm, 3)
	first.MaxPixels = o.MaxPixels
	e.pool.put(&scratch{dec: first})
	return nil
}

func imageFields(c, h, w int) []data.Field {
	return []data.Field{{Name: "image", Shape: []int{c, h, w}, DType: npu.F32}, {Name: "label", DType: npu.I32, Target: true}}
}

// Len is the number of pictures.
func (e *encoded) Len() int { return e.count() }

// Fields are image and label.
func (e *encoded) Fields() []data.Field { return e.fields }

// Path names picture i: its file, or the archive and the member in it.
func (e *encoded) Path(i int) string { return e.path(i) }

// Label is the label of sample i, known without loading it.
func (e *encoded) Label(i int) int { return int(e.label(i)) }

// Encoded reads the bytes of picture i as they are stored, into the memory of buf where it suffices.
func (e *encoded) Encoded(i int, buf []byte) ([]byte, error) { return e.read(i, buf[:0]) }

// Backend says which decoder is used for JPEGs that package baseline refuses: "turbo" or "go".
func (e *encoded) Backend() Backend { return e.backend }

// Decoders says in words what decodes JPEGs.
func (e *encoded) Decoders() string {
	switch {
	case e.opt.Decoder == Go:
		return "Go"
	case e.backend == Turbo:
		return "gotrain, unusual ones by libjpeg-turbo"
	}
	return "gotrain, unusual ones by Go"
}

// Stages are reading a file, decoding what is needed of it, resizing with all that follows, and augmenting where that is asked for.
func (e *encoded) Stages() []data.Stage {
	s := []data.Stage{{Name: "read"}, {Name: "decode"}, {Name: "resize and convert"}, {Name: "augment"}}
	if e.opt.Augment.Empty() {
		s = s[:3]
	}
	for i := range s {
		s[i].Took = time.Duration(e.took[i].Load())
	}
	return s
}

// Load decodes picture i, transforms, augments and normalises it. Errors name the file.
func (e *encoded) Load(_ context.Context, r *data.Rand, i int, dst [][]byte) error {
	s := e.pool.get()
	if s == nil {
		dec, err := NewDecoder(e.opt.Decoder)
		if err != nil {
			return err
		}
		dec.MaxPixels = e.opt.MaxPixels
		s = &scratch{dec: dec}
	}
	defer e.pool.put(s)
	if err := s.load(i, r, e, data.F32(dst[0])); err != nil {
		return err
	}
	binary.NativeEndian.PutUint32(dst[1], uint32(e.label(i)))
	return nil
}

// orientation is the orientation to apply: upright unless Orient is set.
func (e *encoded) orientation(i int, format Format, raw []byte) int {
	if !e.opt.Orient && e.opt.Turned == nil {
		return upright
	}
	o := orientation(format, raw)
	if o != upright && !e.opt.Orient {
		e.turned.Do(func() { e.opt.Turned(e.path(i)) })
		return upright
	}
	return o
}

// Preparation says how a picture becomes a sample where nothing is augmented, for predictions: see data.Preparing.
func (e *encoded) Preparation() json.RawMessage {
	w, h := e.opt.Transform.Size()
	return preparationOf(e.opt.Transform, 3, h, w, e.opt.Norm, e.opt.Orient)
}

// empty lists the classes without pictures, in the order of labels.
func empty(f files, classes []string) (out []string) {
	has := make([]bool, len(classes))
	for i := range f.count() {
		has[f.label(i)] = true
	}
	for label, name := range classes {
		if !has[label] {
			out = append(out, name)
		}
	}
	return out
}

// named adds the place to an error of reading or decoding.
func named(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }
