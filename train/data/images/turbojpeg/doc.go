// Package turbojpeg decodes JPEG with libjpeg-turbo, three to five times as fast as Go's decoder and with the pixels that users of
// PyTorch and Pillow see. Package baseline decodes ordinary files, faster; this one is for all others.
//
// The library (libturbojpeg.so.0, API 2.x or 3.x) is loaded at run time, so a binary starts without it; [Available] reports
// whether it was found. Debian and Ubuntu: apt-get install libturbojpeg0. Fedora: turbojpeg. Homebrew: jpeg-turbo. The environment variable GOTRAIN_TURBOJPEG
// names another file, or "off" to do without. No header of the library is needed to build.
//
// Without cgo, or on systems without dlopen, the package builds and is never available.
package turbojpeg

// LibraryVar is the environment variable that names the library's file, or "off".
const LibraryVar = "GOTRAIN_TURBOJPEG"

// Color is the colour model of a JPEG.
type Color int

// The colour models that Header tells apart. Gray and YCbCr decode to RGB; CMYK (and YCCK) to CMYK as stored.
const (
	RGB Color = iota
	YCbCr
	Gray
	CMYK
)

// Header holds the size and colour model of a JPEG.
type Header struct {
	Width, Height int
	Color         Color
}

// Scaled is a dimension after decoding at 1/denom.
func Scaled(n, denom int) int { return (n + denom - 1) / denom }
