package augment

// Pixels is an 8-bit picture, interleaved, row after row.
type Pixels struct {
	W, H int
	C    int // bytes a pixel: 3 (red, green, blue) or 1
	Pix  []byte
}

// slack is the memory behind the pixels that vector instructions may touch.
const slack = 64

// Reset gives the picture a size, keeping its memory where that suffices. The pixels are undefined.
func (p *Pixels) Reset(w, h, c int) {
	p.W, p.H, p.C = w, h, c
	if n := w * h * c; cap(p.Pix) < n+slack {
		p.Pix = make([]byte, n, n+slack)
	} else {
		p.Pix = p.Pix[:n]
	}
}

// Row is the bytes of one row.
func (p *Pixels) Row(y int) []byte { return p.Pix[y*p.W*p.C:][:p.W*p.C] }

// grey is the luminance of a pixel: Pillow's convert("L").
func grey(r, g, b byte) int { return (19595*int(r) + 38470*int(g) + 7471*int(b) + 0x8000) >> 16 }

// Scratch is the memory of operations that cannot work in place. Each goroutine uses its own; the zero value is ready.
type Scratch struct {
	other Pixels
	steps []Step
	m     matrix // for C
	fill  [3]byte
}

// copyOf returns a copy of the pixels in the scratch memory.
func (s *Scratch) copyOf(p *Pixels) *Pixels {
	s.other.Reset(p.W, p.H, p.C)
	copy(s.other.Pix, p.Pix)
	return &s.other
}
