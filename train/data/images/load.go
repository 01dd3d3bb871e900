package images

import (
	"fmt"
	"image"
	"io"
	"time"

	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images/augment"
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
	spare augment.Scratch
}

// keepBytes is the largest buffer kept from one picture to the next.
const keepBytes = 64 << 20

// load reads, decodes and renders one file.
func (s *scratch) load(i int, r *data.Rand, f *encoded, dst []float32) (err error) {
	begin := time.Now()
	stage := func(i int) {
		now := time.Now()
		f.took[i].Add(int64(now.Sub(begin)))
		begin = now
	}
	if s.data, err = f.read(i, s.data[:0]); err != nil {
		return err
	}
	stage(0)
	info, err := s.dec.Header(s.data)
	if err != nil {
		return named(f.path(i), err)
	}
	turn := f.orientation(i, info.Format, s.data)
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
		return named(f.path(i), err)
	}
	if warning != "" && f.opt.Warn != nil {
		f.opt.Warn(f.path(i), warning)
	}
	if turn != upright {
		s.pic.turn(turn, &s.seen)
		s.pic, s.seen = s.seen, s.pic
	}
	stage(1)
	if f.opt.Augment.Empty() {
		s.draw(&s.pic, denom, view, w, h, f.planes, dst)
		stage(2)
	} else {
		s.drawBytes(&s.pic, denom, view, w, h)
		stage(2)
		s.augmented(r, f, dst)
		stage(3)
	}
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

// augmented changes the pixels that were drawn, and writes them as planes.
func (s *scratch) augmented(r *data.Rand, f *encoded, dst []float32) {
	w, h := s.drawn.W, s.drawn.H
	f.opt.Augment.Pixels(r, &s.drawn, &s.spare)
	emitAll(&s.drawn, f.planes, dst)
	f.opt.Augment.Values(r, dst, len(f.planes), h, w)
}

// readFile appends a whole file to an empty buffer.
func readFile(path string, buf []byte) ([]byte, error) {
	f, err := foreign.Open(path)
	if err != nil {
		return buf, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return buf, err
	}
	if st.Size() > maxFile {
		return buf, fmt.Errorf("%s has %d bytes, too large for a picture", path, st.Size())
	}
	buf = sized(buf, int(st.Size()))
	if n, err := io.ReadFull(f, buf); err != nil {
		return buf, fmt.Errorf("reading %s: byte %d of %d: %w", path, n, st.Size(), err)
	}
	return buf, nil
}

// maxFile is more than any picture takes.
const maxFile = 1 << 30
