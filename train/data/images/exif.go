package images

import (
	"bytes"
	"encoding/binary"
)

// upright is the orientation of a picture that is stored the way it is displayed.
const upright = 1

// orientation is the EXIF orientation of a JPEG or PNG, 1 to 8; upright if there is none or it cannot be read.
func orientation(format Format, raw []byte) int {
	switch format {
	case JPEG:
		return tiffOrientation(jpegEXIF(raw))
	case PNG:
		return tiffOrientation(pngEXIF(raw))
	}
	return upright
}

// jpegEXIF finds the APP1 segment with EXIF among those before the picture.
func jpegEXIF(raw []byte) []byte {
	for at := 2; at+4 <= len(raw) && raw[at] == 0xff; {
		marker, size := raw[at+1], int(binary.BigEndian.Uint16(raw[at+2:]))
		if marker == 0xff { // padding
			at++
			continue
		}
		if marker == 0xda || size < 2 || at+2+size > len(raw) {
			return nil
		}
		if body, ok := bytes.CutPrefix(raw[at+4:at+2+size], []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return body
		}
		at += 2 + size
	}
	return nil
}

// pngEXIF finds the eXIf chunk.
func pngEXIF(raw []byte) []byte {
	for at := 8; at+12 <= len(raw); {
		size := int64(binary.BigEndian.Uint32(raw[at:]))
		if size > int64(len(raw)-at-12) {
			return nil
		}
		if string(raw[at+4:at+8]) == "eXIf" {
			return raw[at+8 : at+8+int(size)]
		}
		at += 12 + int(size)
	}
	return nil
}

// tiffOrientation reads tag 0x0112 of the first directory.
func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return upright
	}
	var order binary.ByteOrder = binary.LittleEndian
	if tiff[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	for n, at := int(order.Uint16(tiff[at:])), at+2; n > 0 && at+12 <= int64(len(tiff)); n, at = n-1, at+12 {
		if e := tiff[at:]; order.Uint16(e) == 0x0112 && order.Uint16(e[2:]) == 3 { // a short
			if o := int(order.Uint16(e[8:])); o >= 1 && o <= 8 {
				return o
			}
			return upright
		}
	}
	return upright
}

// swaps reports whether an orientation exchanges width and height.
func swaps(orientation int) bool { return orientation > 4 }

// turn writes the picture the way it is displayed into dst.
func (p *Picture) turn(orientation int, dst *Picture) {
	w, h := p.W, p.H
	if swaps(orientation) {
		w, h = h, w
	}
	dst.reset(w, h, p.C)
	for y := range p.H {
		for x := range p.W {
			u, v := x, y
			switch orientation {
			case 2: // mirrored left and right
				u = p.W - 1 - x
			case 3: // by 180 degrees
				u, v = p.W-1-x, p.H-1-y
			case 4: // mirrored up and down
				v = p.H - 1 - y
			case 5: // transposed
				u, v = y, x
			case 6: // by 90 degrees clockwise
				u, v = p.H-1-y, x
			case 7: // transposed over the other diagonal
				u, v = p.H-1-y, p.W-1-x
			case 8: // by 90 degrees the other way
				u, v = y, p.W-1-x
			}
			copy(dst.Pix[(v*w+u)*p.C:][:p.C], p.Pix[(y*p.W+x)*p.C:][:p.C])
		}
	}
}
