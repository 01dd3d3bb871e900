package images

import (
	"bytes"
	"fmt"
)

// Picture is 8-bit pixels, interleaved, row after row.
type Picture struct {
	W, H int
	C    int // bytes a pixel: 3 (red, green, blue) or 1
	Pix  []byte
	X, Y int // where the first pixel lies in the picture that this is a region of; 0 for a whole one
}

// slack is the memory behind the pixels that vector instructions may read.
const slack = 64

// reset gives the picture a size, keeping its memory where that suffices.
func (p *Picture) reset(w, h, c int) {
	p.W, p.H, p.C, p.X, p.Y = w, h, c, 0, 0
	if n := w * h * c; cap(p.Pix) < n+slack {
		p.Pix = make([]byte, n, n+slack)
	} else {
		p.Pix = p.Pix[:n]
	}
}

// Format is a file format, detected by its first bytes.
type Format string

// The known formats; only the first three can be decoded.
const (
	JPEG    Format = "jpeg"
	PNG     Format = "png"
	GIF     Format = "gif"
	unknown Format = ""
)

// Sniff detects the format of a file from its first bytes, never from its name.
func Sniff(data []byte) Format {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8")):
		return JPEG
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return GIF
	}
	return unknown
}

// describe guesses what a file is that cannot be decoded.
func describe(data []byte) string {
	has := func(at int, s string) bool { return len(data) >= at+len(s) && string(data[at:at+len(s)]) == s }
	switch {
	case len(data) == 0:
		return "the file is empty"
	case has(0, "RIFF") && has(8, "WEBP"):
		return "a WebP picture"
	case has(0, "BM"):
		return "a BMP picture"
	case has(0, "II*\x00"), has(0, "MM\x00*"):
		return "a TIFF picture"
	case has(4, "ftypavif"):
		return "an AVIF picture"
	case has(4, "ftypheic"), has(4, "ftypmif1"):
		return "a HEIF picture"
	case has(0, "\x00\x00\x00\x0cJXL "), has(0, "\xff\x0a"):
		return "a JPEG XL picture"
	case has(0, "version https://git-lfs"):
		return "a Git LFS pointer, not the picture itself"
	}
	text := true
	head := data[:min(len(data), 64)]
	for _, c := range head {
		text = text && (c >= 0x20 && c < 0x7f || c == '\n' || c == '\r' || c == '\t')
	}
	if text {
		return fmt.Sprintf("text that begins with %q", head[:min(len(head), 24)])
	}
	return fmt.Sprintf("unknown data that begins with % x", head[:min(len(head), 8)])
}
