package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"

	"github.com/gotrain/gotrain/train/data/images/baseline"
	"github.com/gotrain/gotrain/train/data/images/turbojpeg"
)

// Backend chooses the JPEG decoder.
type Backend string

// The backends.
const (
	Auto  Backend = "auto"  // package baseline; for the files that it refuses libjpeg-turbo where it can be loaded, else image/jpeg
	Turbo Backend = "turbo" // the same, but an error without libjpeg-turbo
	Go    Backend = "go"    // image/jpeg for all: no arithmetic coding, chroma not smoothed (pixels differ by up to 34 of 255), many times slower
)

// DefaultMaxPixels is where Pillow begins to suspect a decompression bomb; 256 MB as RGB.
const DefaultMaxPixels = 1 << 30 / 4 / 3

// Decoder turns files into pictures. It keeps memory from one picture to the next, so each goroutine needs its own.
//
// The pixels are those that torchvision's ImageFolder gives: RGB, alpha dropped, EXIF orientation ignored (Folder can apply it), CMYK converted without colour
// profile. (16-bit grey PNGs are the exception: Pillow clips them to white, here they keep their upper eight bits.)
type Decoder struct {
	// MaxPixels rejects larger pictures by their header, before allocating memory. 0 means DefaultMaxPixels.
	MaxPixels int

	turbo *turbojpeg.Decompressor // nil: Go's decoder
	quick *baseline.Decoder       // for most files; nil: for none
	cmyk  []byte
	rd    bytes.Reader
}

// Info holds the header of a file.
type Info struct {
	Format Format
	W, H   int
	jpeg   turbojpeg.Header
	quick  bool // the quick decoder knows files of this kind
}

// NewDecoder creates a decoder. It fails for Turbo if the library is missing, and for unknown names.
func NewDecoder(b Backend) (*Decoder, error) {
	switch b {
	case Go:
		return &Decoder{}, nil
	case Auto, Turbo, "":
		t, err := turbojpeg.New()
		if err != nil && b == Turbo {
			return nil, fmt.Errorf("images: %w", err)
		}
		return &Decoder{turbo: t, quick: new(baseline.Decoder)}, nil
	}
	return nil, fmt.Errorf("images: unknown JPEG decoder %q\nhint: use one of auto, turbo, go", b)
}

// Backend reports what decodes the JPEGs that package baseline refuses: "turbo" or "go".
func (d *Decoder) Backend() Backend {
	if d.turbo != nil {
		return Turbo
	}
	return Go
}

// Header reads format and size and checks the size, without decoding.
func (d *Decoder) Header(data []byte) (Info, error) {
	info := Info{Format: Sniff(data)}
	var cfg image.Config
	var err error
	d.rd.Reset(data)
	switch {
	case info.Format == JPEG && d.quick != nil && d.quick.Parse(data) == nil:
		info.quick = true
		cfg.Width, cfg.Height = d.quick.Size()
	case info.Format == JPEG && d.turbo != nil:
		info.jpeg, err = d.turbo.Header(data)
		cfg.Width, cfg.Height = info.jpeg.Width, info.jpeg.Height
	case info.Format == JPEG:
		cfg, err = jpeg.DecodeConfig(&d.rd)
	case info.Format == PNG:
		cfg, err = png.DecodeConfig(&d.rd)
	case info.Format == GIF:
		cfg, err = gif.DecodeConfig(&d.rd)
	default:
		return info, fmt.Errorf("not a JPEG, PNG or GIF picture but %s", describe(data))
	}
	if err != nil {
		return info, d.explain(info.Format, err)
	}
	limit := d.MaxPixels
	if limit <= 0 {
		limit = DefaultMaxPixels
	}
	if cfg.Width <= 0 || cfg.Height <= 0 {
		return info, fmt.Errorf("%s picture of %d x %d pixels is empty", info.Format, cfg.Width, cfg.Height)
	}
	if int64(cfg.Width)*int64(cfg.Height) > int64(limit) {
		return info, fmt.Errorf("%s picture claims %d x %d pixels, more than the limit of %d", info.Format, cfg.Width, cfg.Height, limit)
	}
	info.W, info.H = cfg.Width, cfg.Height
	return info, nil
}

// explain adds a hint if libjpeg-turbo supports what Go's decoder does not.
func (d *Decoder) explain(f Format, err error) error {
	var unsupported jpeg.UnsupportedError
	if f == JPEG && errors.As(err, &unsupported) {
		return fmt.Errorf("%w\nhint: libjpeg-turbo can decode this: apt-get install libturbojpeg0 (Debian, Ubuntu), and build with cgo", err)
	}
	return fmt.Errorf("decoding %s: %w", f, err)
}

// scales returns the power of two by which the decoder can cheaply shrink this picture: 1, or up to 8.
func (d *Decoder) scales(info Info) int {
	if info.Format == JPEG && d.turbo != nil {
		return 8
	}
	return 1
}

// Decode decodes the picture that Header described, at 1/denom of its size (1, or what scales allows), as RGB. The warning describes damage that
// left all pixels readable.
func (d *Decoder) Decode(data []byte, info Info, denom int, dst *Picture) (warning string, err error) {
	return d.decode(data, info, denom, image.Rect(0, 0, turbojpeg.Scaled(info.W, denom), turbojpeg.Scaled(info.H, denom)), dst)
}

// decode decodes at least the region r of the scaled picture. dst says which region it is.
func (d *Decoder) decode(data []byte, info Info, denom int, r image.Rectangle, dst *Picture) (warning string, err error) {
	if info.quick && denom == 1 && !r.Empty() {
		// Whatever is wrong, the other decoder says it, or can cope.
		if d.decodeQuick(data, r, dst) == nil {
			return "", nil
		}
	}
	if info.Format == JPEG && d.turbo != nil {
		if info.quick {
			if info.jpeg, err = d.turbo.Header(data); err != nil {
				return "", d.explain(info.Format, err)
			}
		}
		return d.decodeTurbo(data, info, denom, dst)
	}
	if denom != 1 {
		return "", fmt.Errorf("the %s decoder cannot scale by 1/%d", info.Format, denom)
	}
	var img image.Image
	d.rd.Reset(data)
	switch info.Format {
	case JPEG:
		img, err = jpeg.Decode(&d.rd)
	case PNG:
		img, err = png.Decode(&d.rd)
	case GIF:
		img, err = d.decodeGIF(data)
	default:
		return "", errors.New("no picture")
	}
	if err != nil {
		return "", d.explain(info.Format, err)
	}
	dst.reset(info.W, info.H, 3)
	toRGB(img, dst)
	return "", nil
}

// decodeQuick decodes a region with the quick decoder.
func (d *Decoder) decodeQuick(data []byte, r image.Rectangle, dst *Picture) error {
	if err := d.quick.Parse(data); err != nil {
		return err
	}
	if w, h := d.quick.Size(); !r.In(image.Rect(0, 0, w, h)) {
		return baseline.ErrOther // not the file that Header has seen
	}
	dst.reset(r.Dx(), r.Dy(), 3)
	dst.X, dst.Y = r.Min.X, r.Min.Y
	return d.quick.Decode(data, r, dst.Pix)
}

// decodeGIF decodes the first frame.
func (d *Decoder) decodeGIF(data []byte) (image.Image, error) {
	img, err := gif.Decode(&d.rd)
	if err != nil {
		return nil, err
	}
	d.rd.Reset(data)
	if cfg, err := gif.DecodeConfig(&d.rd); err == nil {
		if m, ok := img.(*image.Paletted); ok {
			if global, ok := cfg.ColorModel.(color.Palette); ok {
				underTransparency(m, global)
			}
		}
	}
	return img, nil
}

func (d *Decoder) decodeTurbo(data []byte, info Info, denom int, dst *Picture) (string, error) {
	w, h := turbojpeg.Scaled(info.W, denom), turbojpeg.Scaled(info.H, denom)
	dst.reset(w, h, 3)
	if info.jpeg.Color != turbojpeg.CMYK {
		return d.turbo.Decode(data, info.jpeg, denom, dst.Pix)
	}
	if cap(d.cmyk) < w*h*4 {
		d.cmyk = make([]byte, w*h*4)
	}
	d.cmyk = d.cmyk[:w*h*4]
	warn, err := d.turbo.Decode(data, info.jpeg, denom, d.cmyk)
	if err == nil {
		// Only Adobe software writes CMYK, and stores it inverted; Pillow makes the same assumption.
		cmykToRGB(dst.Pix, d.cmyk, 0xff)
	}
	return warn, err
}

// shrink frees the memory of an unusually large picture.
func (d *Decoder) shrink() {
	if cap(d.cmyk) > keepBytes {
		d.cmyk = nil
	}
	if d.quick != nil {
		d.quick.Keep(keepBytes)
	}
	d.rd.Reset(nil)
}
