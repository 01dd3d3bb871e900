package images

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"

	"github.com/gotrain/gotrain/train/data/images/augment"
	"github.com/gotrain/gotrain/train/data/images/turbojpeg"
)

// Preparation says how a picture becomes the input of a network, f32[Channels Height Width], when there is nothing to augment: what an evaluation does.
// Checkpoints hold it in JSON.
type Preparation struct {
	Channels int `json:"channels"` // 3: red, green, blue; 1: grey
	Height   int `json:"height"`
	Width    int `json:"width"`
	// Short is the length to which the short side is resized before the middle is cut out; 0: nothing is resized.
	Short int       `json:"short,omitempty"`
	Mean  []float64 `json:"mean,omitempty"` // by channel, see Norm; none: values from 0 to 1
	Std   []float64 `json:"std,omitempty"`
	// Orient applies the EXIF orientation.
	Orient bool `json:"orient,omitempty"`
	// MaxPixels rejects larger pictures by their header; 0 is DefaultMaxPixels. It is a limit of the program, and no checkpoint has it.
	MaxPixels int `json:"-"`
}

// ParsePreparation is the inverse of json.Marshal, and checks what it reads.
func ParsePreparation(raw []byte) (Preparation, error) {
	var p Preparation
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("images: how pictures are prepared: %w", err)
	}
	return p, p.Check()
}

// Check reports what is wrong with the numbers.
func (p Preparation) Check() error {
	if p.Channels != 1 && p.Channels != 3 {
		return fmt.Errorf("images: pictures have 1 or 3 channels, not %d", p.Channels)
	}
	if n := len(p.Mean); n != len(p.Std) || n != 0 && n != p.Channels {
		return fmt.Errorf("images: %d means and %d standard deviations for %d channels", n, len(p.Std), p.Channels)
	}
	return errors.Join(p.transform().Check(), p.norm().Check())
}

func (p Preparation) transform() ResizeCrop {
	return ResizeCrop{Short: p.Short, Width: p.Width, Height: p.Height}
}

func (p Preparation) norm() (n Norm) {
	for c := range n.Mean {
		if len(p.Mean) > 0 && len(p.Std) > 0 {
			n.Mean[c], n.Std[c] = p.Mean[min(c, len(p.Mean)-1)], p.Std[min(c, len(p.Std)-1)]
		}
	}
	return n
}

// preparationOf describes what a source does in an evaluation. A random crop has the usual evaluation, whose short side is 8/7 of the crop.
func preparationOf(t Transform, channels, h, w int, norm Norm, orient bool) json.RawMessage {
	p := Preparation{Channels: channels, Height: h, Width: w, Orient: orient}
	switch t := t.(type) {
	case nil: // the whole picture as it is stored; a file of another size is resized to it
		p.Short = max(w, h)
	case ResizeCrop:
		p.Short = t.Short
	case PadCrop:
	default:
		p.Short = int(math.Round(float64(max(w, h)) * 8 / 7))
	}
	if norm != (Norm{}) {
		p.Mean, p.Std = norm.Mean[:channels], norm.Std[:channels]
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil // numbers that JSON lacks, which Check has refused
	}
	return raw
}

// Preparer turns pictures into tensors. All methods may be called concurrently; memory is kept from one picture to the next.
type Preparer struct {
	p      Preparation
	t      ResizeCrop
	planes []*levels
	pool   pool[scratch]
}

// NewPreparer checks p.
func NewPreparer(p Preparation) (*Preparer, error) {
	if err := errors.Join(p.Check(), augment.Pipeline{}.Check()); err != nil {
		return nil, err
	}
	return &Preparer{p: p, t: p.transform(), planes: planes(p.norm(), p.Channels)}, nil
}

// Preparation is what NewPreparer got.
func (p *Preparer) Preparation() Preparation { return p.p }

// Elems is the number of elements of a tensor.
func (p *Preparer) Elems() int { return p.p.Channels * p.p.Height * p.p.Width }

func (p *Preparer) with(dst []float32, f func(*scratch) error) error {
	if len(dst) != p.Elems() {
		return fmt.Errorf("images: room for %d elements, but a tensor of %d x %d x %d has %d", len(dst), p.p.Channels, p.p.Height, p.p.Width, p.Elems())
	}
	s := p.pool.get()
	if s == nil {
		dec, err := NewDecoder(Auto)
		if err != nil {
			return err
		}
		dec.MaxPixels = p.p.MaxPixels
		s = &scratch{dec: dec}
	}
	defer p.pool.put(s)
	defer s.trim()
	return f(s)
}

// File prepares the picture in a file. An error names the file.
func (p *Preparer) File(dst []float32, path string) error {
	return p.with(dst, func(s *scratch) (err error) {
		if s.data, err = readFile(path, s.data[:0]); err != nil {
			return err
		}
		if err := p.encoded(s, s.data, dst); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// Bytes prepares a picture in a format that this package decodes: JPEG, PNG or GIF.
func (p *Preparer) Bytes(dst []float32, raw []byte) error {
	return p.with(dst, func(s *scratch) error { return p.encoded(s, raw, dst) })
}

// Reader is Bytes for all of r.
func (p *Preparer) Reader(dst []float32, r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return p.Bytes(dst, raw)
}

// Image prepares a picture that is decoded already. Alpha is dropped, as it is for files.
func (p *Preparer) Image(dst []float32, img image.Image) error {
	b := img.Bounds()
	if b.Empty() {
		return fmt.Errorf("images: a picture of %d x %d pixels is empty", b.Dx(), b.Dy())
	}
	return p.with(dst, func(s *scratch) error {
		s.pic.reset(b.Dx(), b.Dy(), 3)
		toRGB(atOrigin(img), &s.pic)
		p.draw(s, 1, p.t.View(nil, b.Dx(), b.Dy()), dst)
		return nil
	})
}

// encoded decodes what the view needs, and draws it.
func (p *Preparer) encoded(s *scratch, raw []byte, dst []float32) error {
	info, err := s.dec.Header(raw)
	if err != nil {
		return err
	}
	turn := upright
	if p.p.Orient {
		turn = orientation(info.Format, raw)
	}
	w, h := info.W, info.H
	if swaps(turn) {
		w, h = h, w
	}
	view := p.t.View(nil, w, h)
	denom := view.reduce(s.dec.scales(info))
	region := s.plan(turbojpeg.Scaled(w, denom), turbojpeg.Scaled(h, denom), denom, view, p.p.Width, p.p.Height)
	if turn != upright {
		region = image.Rect(0, 0, turbojpeg.Scaled(info.W, denom), turbojpeg.Scaled(info.H, denom))
	}
	if _, err := s.dec.decode(raw, info, denom, region, &s.pic); err != nil {
		return err
	}
	if turn != upright {
		s.pic.turn(turn, &s.seen)
		s.pic, s.seen = s.seen, s.pic
	}
	if p.p.Channels == 1 {
		s.pic.toGrey(&s.canvas.grey)
		s.canvas.draw(&s.canvas.grey, denom, view, p.p.Width, p.p.Height, p.planes, dst)
		return nil
	}
	s.canvas.draw(&s.pic, denom, view, p.p.Width, p.p.Height, p.planes, dst)
	return nil
}

// draw draws a view of the whole picture in s.pic.
func (p *Preparer) draw(s *scratch, denom int, view View, dst []float32) {
	if p.p.Channels == 1 {
		s.pic.toGrey(&s.canvas.grey)
		s.render(&s.canvas.grey, denom, view, p.p.Width, p.p.Height, p.planes, dst)
		return
	}
	s.render(&s.pic, denom, view, p.p.Width, p.p.Height, p.planes, dst)
}

// trim frees the memory of an unusually large picture.
func (s *scratch) trim() {
	for _, p := range []*Picture{&s.pic, &s.seen, &s.canvas.grey} {
		if cap(p.Pix) > keepBytes {
			*p = Picture{}
		}
	}
	if cap(s.data) > keepBytes {
		s.data = nil
	}
	s.dec.shrink()
}

// toGrey writes a colour picture as grey: Pillow's convert("L").
func (p *Picture) toGrey(dst *Picture) {
	dst.reset(p.W, p.H, 1)
	dst.X, dst.Y = p.X, p.Y
	for i := range dst.Pix {
		r, g, b := uint32(p.Pix[3*i]), uint32(p.Pix[3*i+1]), uint32(p.Pix[3*i+2])
		dst.Pix[i] = byte((r*19595 + g*38470 + b*7471 + 0x8000) >> 16)
	}
}

// shifted is an image whose bounds begin at the origin.
type shifted struct {
	image.Image
	by image.Point
}

func (s shifted) Bounds() image.Rectangle { return s.Image.Bounds().Sub(s.by) }

func (s shifted) At(x, y int) color.Color { return s.Image.At(x+s.by.X, y+s.by.Y) }

// atOrigin moves an image to the origin: a part of another one has its place there.
func atOrigin(img image.Image) image.Image {
	by := img.Bounds().Min
	if by == (image.Point{}) {
		return img
	}
	return shifted{img, by}
}
