package images

import (
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"io"
	"time"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/turbojpeg"
	"github.com/gotrain/gotrain/train/foreign"
)

// scratch is the memory needed to load one picture; each loading goroutine uses its own.
type scratch struct {
	dec  *Decoder
	data []byte
	pic  Picture
	seen Picture // pic, turned
	canvas
}

// keepBytes is the largest buffer kept from one picture to the next.
const keepBytes = 64 << 20

// Load decodes picture i, transforms and normalises it. Errors name the file.
func (f *Folder) Load(_ context.Context, r *data.Rand, i int, dst [][]byte) error {
	s := f.pool.get()
	if s == nil {
		dec, err := NewDecoder(f.opt.Decoder)
		if err != nil {
			return err
		}
		dec.MaxPixels = f.opt.MaxPixels
		s = &scratch{dec: dec}
	}
	defer f.pool.put(s)
	path := f.Path(i)
	if err := s.load(path, r, f, data.F32(dst[0])); err != nil {
		return err
	}
	binary.NativeEndian.PutUint32(dst[1], uint32(f.files[i].label))
	return nil
}

// load reads, decodes and renders one file.
func (s *scratch) load(path string, r *data.Rand, f *Folder, dst []float32) error {
	begin := time.Now()
	stage := func(i int) {
		now := time.Now()
		f.took[i].Add(int64(now.Sub(begin)))
		begin = now
	}
	if err := s.read(path); err != nil {
		return err
	}
	stage(0)
	info, err := s.dec.Header(s.data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	turn := f.orientation(path, info.Format, s.data)
	width, height := info.W, info.H
	if swaps(turn) {
		width, height = height, width
	}
	view := f.opt.Transform.View(r, width, height)
	denom := view.reduce(s.dec.scales(info))
	w, h := f.opt.Transform.Size()
	region := s.plan(turbojpeg.Scaled(width, denom), turbojpeg.Scaled(height, denom), denom, view, w, h)
	if turn != upright { // the region is one of the turned picture
		region = image.Rect(0, 0, turbojpeg.Scaled(info.W, denom), turbojpeg.Scaled(info.H, denom))
	}
	warning, err := s.dec.decode(s.data, info, denom, region, &s.pic)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if warning != "" && f.opt.Warn != nil {
		f.opt.Warn(path, warning)
	}
	if turn != upright {
		s.pic.turn(turn, &s.seen)
		s.pic, s.seen = s.seen, s.pic
	}
	stage(1)
	s.draw(&s.pic, denom, view, w, h, f.planes, dst)
	stage(2)
	if cap(s.pic.Pix) > keepBytes {
		s.pic = Picture{}
	}
	if cap(s.seen.Pix) > keepBytes {
		s.seen = Picture{}
	}
	if cap(s.data) > keepBytes {
		s.data = nil
	}
	s.dec.shrink()
	return nil
}

// orientation is the orientation to apply: upright unless Orient is set.
func (f *Folder) orientation(path string, format Format, raw []byte) int {
	if !f.opt.Orient && f.opt.Turned == nil {
		return upright
	}
	o := orientation(format, raw)
	if o != upright && !f.opt.Orient {
		f.turned.Do(func() { f.opt.Turned(path) })
		return upright
	}
	return o
}

// read reads a whole file into reused memory.
func (s *scratch) read(path string) error {
	f, err := foreign.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	const limit = 1 << 30
	if st.Size() > limit {
		return fmt.Errorf("%s has %d bytes, too large for a picture", path, st.Size())
	}
	s.data = sized(s.data, int(st.Size()))
	if n, err := io.ReadFull(f, s.data); err != nil {
		return fmt.Errorf("reading %s: byte %d of %d: %w", path, n, st.Size(), err)
	}
	return nil
}
