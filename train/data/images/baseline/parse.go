package baseline

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrOther says that a file is no JPEG, or one of another kind than this package decodes.
var ErrOther = errors.New("not a baseline JPEG of the common kind")

// ErrDamaged says that the compressed data are not what they must be. What has been decoded until then is worthless.
var ErrDamaged = errors.New("the JPEG is damaged")

// frame is what the markers of a file say.
type frame struct {
	w, h       int
	comps      int // 1 or 3
	hs, vs     int // how many luma blocks a block of chroma stands for, across and down: 1 or 2
	quant      [3]int
	dc, ac     [3]int
	restart    int // MCUs between restart markers; 0: there are none
	scan       int // where the compressed data begin
	end        int // of the compressed data at the latest: the last end marker of the file
	haveQ      [4]bool
	haveDC     [4]bool
	haveAC     [4]bool
	ids        [3]byte
	adobe      int // its transform, or -1
	jfif       bool
	quantTable [4][64]uint16 // in natural order
}

// The order in which coefficients are stored. Numbers beyond the block, which damaged data give, stay in it.
var zigzag = [80]byte{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}

const (
	sof0 = 0xc0
	dht  = 0xc4
	soi  = 0xd8
	eoi  = 0xd9
	sos  = 0xda
	dqt  = 0xdb
	dri  = 0xdd
	app0 = 0xe0
	appE = 0xee
	com  = 0xfe
)

// Parse reads the markers up to the compressed data. The decoder then knows the picture's size and is ready for Decode.
func (d *Decoder) Parse(src []byte) error {
	d.ready = false
	f := &d.f
	f.reset()
	if len(src) < 4 || src[0] != 0xff || src[1] != soi {
		return ErrOther
	}
	for at := 2; ; {
		marker, body, next := segment(src, at)
		if body == nil {
			return ErrOther
		}
		ok := true
		switch {
		case marker == sof0 || marker == sof0+1: // baseline, or extended with 8 bits, which is the same but for 16-bit tables
			ok = f.w == 0 && f.frameHeader(body)
		case marker == dht:
			ok = d.huffmanTables(body)
		case marker == dqt:
			ok = f.quantTables(body)
		case marker == dri:
			ok = len(body) == 2
			if ok {
				f.restart = int(binary.BigEndian.Uint16(body))
			}
		case marker == app0:
			f.jfif = f.jfif || len(body) >= 14 && bytes.HasPrefix(body, []byte("JFIF\x00"))
		case marker == appE:
			if len(body) >= 12 && bytes.HasPrefix(body, []byte("Adobe")) {
				f.adobe = int(body[11])
			}
		case marker == sos:
			if !f.scanHeader(body) || !f.ycbcr() {
				return ErrOther
			}
			f.scan = next
			// The last end marker: there may be bytes behind it. It need not be that of this picture, but in front of it is no other.
			end := bytes.LastIndex(src[next:], []byte{0xff, eoi})
			if end < 0 {
				return ErrOther
			}
			f.end = next + end
			d.ready = true
			return nil
		case marker > app0 && marker <= 0xef || marker == com:
		default: // another kind of picture, or damage
			ok = false
		}
		if !ok {
			return ErrOther
		}
		at = next
	}
}

// segment returns the marker at a place, what belongs to it, and where the next one is. body is nil if there is none.
func segment(src []byte, at int) (marker byte, body []byte, next int) {
	if at+4 > len(src) || src[at] != 0xff {
		return 0, nil, 0
	}
	for src[at+1] == 0xff { // fill bytes
		if at++; at+4 > len(src) {
			return 0, nil, 0
		}
	}
	n := int(binary.BigEndian.Uint16(src[at+2:]))
	if n < 2 || at+2+n > len(src) {
		return 0, nil, 0
	}
	return src[at+1], src[at+4 : at+2+n], at + 2 + n
}

func (f *frame) reset() { *f = frame{adobe: -1} }

// frameHeader reads size and components.
func (f *frame) frameHeader(b []byte) bool {
	if len(b) < 6 || b[0] != 8 || len(b) != 6+3*int(b[5]) {
		return false
	}
	f.h, f.w, f.comps = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:])), int(b[5])
	const limit = 65500 // of libjpeg
	if f.w == 0 || f.h == 0 || f.w > limit || f.h > limit {
		return false
	}
	for i := range min(f.comps, 3) {
		f.ids[i], f.quant[i] = b[6+3*i], int(b[8+3*i])
		if f.quant[i] > 3 {
			return false
		}
	}
	switch f.comps {
	case 1: // a single component has no subsampling, whatever its factors say
		f.hs, f.vs = 1, 1
		return b[7]>>4 >= 1 && b[7]>>4 <= 4 && b[7]&15 >= 1 && b[7]&15 <= 4
	case 3:
		f.hs, f.vs = int(b[7]>>4), int(b[7]&15)
		known := b[7] == 0x11 || b[7] == 0x21 || b[7] == 0x22
		// Chroma of one or two columns is not smoothed.
		return known && b[10] == 0x11 && b[13] == 0x11 && (f.hs == 1 || f.w > 4)
	}
	return false
}

func (f *frame) quantTables(b []byte) bool {
	for len(b) > 0 {
		wide, id := int(b[0]>>4), b[0]&15
		size := 64 * (1 + wide)
		if wide > 1 || id > 3 || len(b) < 1+size {
			return false
		}
		for k := range 64 {
			if wide == 0 {
				f.quantTable[id][zigzag[k]] = uint16(b[1+k])
			} else {
				f.quantTable[id][zigzag[k]] = binary.BigEndian.Uint16(b[1+2*k:])
			}
		}
		f.haveQ[id] = true
		b = b[1+size:]
	}
	return true
}

// scanHeader reads which tables belong to which component; the scan must have all of them, in the order of the frame.
func (f *frame) scanHeader(b []byte) bool {
	n := f.comps
	if n == 0 || len(b) != 4+2*n || int(b[0]) != n || b[1+2*n] != 0 || b[2+2*n] != 63 || b[3+2*n] != 0 {
		return false
	}
	for i := range n {
		f.dc[i], f.ac[i] = int(b[2+2*i]>>4), int(b[2+2*i]&15)
		if b[1+2*i] != f.ids[i] || f.dc[i] > 3 || f.ac[i] > 3 || !f.haveDC[f.dc[i]] || !f.haveAC[f.ac[i]] || !f.haveQ[f.quant[i]] {
			return false
		}
	}
	return true
}

// ycbcr tells by libjpeg's rules whether three components are luma and chroma.
func (f *frame) ycbcr() bool {
	switch {
	case f.comps == 1 || f.jfif:
		return true
	case f.adobe >= 0:
		return f.adobe == 1
	}
	return f.ids == [3]byte{1, 2, 3}
}
