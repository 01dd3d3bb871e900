//go:build cgo && (linux || darwin)

package turbojpeg

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// The TurboJPEG API as far as it is used here; own declarations of libjpeg-turbo's stable C ABI.
typedef struct {
	void *(*init_decompress)(void);
	int (*header3)(void *h, const unsigned char *buf, unsigned long size, int *w, int *height, int *subsamp, int *colorspace);
	int (*decompress2)(void *h, const unsigned char *buf, unsigned long size, unsigned char *dst, int w, int pitch, int height, int format, int flags);
	char *(*error_str2)(void *h);
	int (*error_code)(void *h);
	int (*destroy)(void *h);
} tj_api;

static tj_api tj;

// tj_open fills the table, or returns the name of what is missing (static or owned by the loader).
static const char *tj_open(const char *path) {
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) return dlerror();
	*(void **)&tj.init_decompress = dlsym(lib, "tjInitDecompress");
	*(void **)&tj.header3 = dlsym(lib, "tjDecompressHeader3");
	*(void **)&tj.decompress2 = dlsym(lib, "tjDecompress2");
	*(void **)&tj.error_str2 = dlsym(lib, "tjGetErrorStr2");
	*(void **)&tj.error_code = dlsym(lib, "tjGetErrorCode");
	*(void **)&tj.destroy = dlsym(lib, "tjDestroy");
	if (!tj.init_decompress || !tj.header3 || !tj.decompress2 || !tj.error_str2 || !tj.error_code || !tj.destroy)
		return "the library lacks functions of the TurboJPEG 2 API";
	return 0;
}

static void *tj_new(void) { return tj.init_decompress(); }
static void tj_free(void *h) { tj.destroy(h); }
static const char *tj_error(void *h) { return tj.error_str2(h); }
static int tj_warning(void *h) { return tj.error_code(h) == 0; } // TJERR_WARNING

// Results come back in an array that C owns, so that no Go pointer is kept and nothing escapes.
typedef struct { int rc, w, h, subsamp, color; } tj_header;
static tj_header tj_read_header(void *h, const unsigned char *buf, unsigned long size) {
	tj_header r = {0, 0, 0, 0, 0};
	r.rc = tj.header3(h, buf, size, &r.w, &r.h, &r.subsamp, &r.color);
	return r;
}
static int tj_decode(void *h, const unsigned char *buf, unsigned long size, unsigned char *dst, int w, int height, int format, int flags) {
	return tj.decompress2(h, buf, size, dst, w, 0, height, format, flags);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/gotrain/gotrain/npu/solib"
)

// Constants of the TurboJPEG ABI.
const (
	pixelRGB  = 0
	pixelCMYK = 11

	flagAccurateDCT   = 4096
	flagStopOnWarning = 8192
	flagLimitScans    = 32768 // 2.1 and later; older ones ignore it
)

var load = sync.OnceValues(func() (string, error) {
	names := []string{"libturbojpeg.so.0"}
	if runtime.GOOS == "darwin" {
		names = []string{"libturbojpeg.0.dylib", "/opt/homebrew/lib/libturbojpeg.0.dylib", "/usr/local/lib/libturbojpeg.0.dylib"}
	}
	if v := os.Getenv(LibraryVar); v == "off" {
		return "", fmt.Errorf("turbojpeg: disabled by %s=off", LibraryVar)
	} else if v != "" {
		file, err := solib.Check(v)
		if err != nil {
			return "", fmt.Errorf("turbojpeg: %s: %w", LibraryVar, err)
		}
		names = []string{file}
	}
	var why []string
	for _, name := range names {
		c := C.CString(name)
		msg := C.tj_open(c)
		C.free(unsafe.Pointer(c))
		if msg == nil {
			return name, nil
		}
		why = append(why, C.GoString(msg))
	}
	return "", fmt.Errorf("turbojpeg: cannot load the library: %s\nhint: apt-get install libturbojpeg0 (Debian, Ubuntu), or set %s to its path",
		strings.Join(why, "; "), LibraryVar)
})

// Available returns why the library cannot be used, or nil.
func Available() error {
	_, err := load()
	return err
}

// Library is the file that was loaded, or empty.
func Library() string {
	name, _ := load()
	return name
}

// Decompressor decodes one picture at a time; it is not safe for concurrent use. Its C memory is freed by the garbage
// collector, or by Close.
type Decompressor struct {
	h       unsafe.Pointer
	cleanup runtime.Cleanup
}

// New creates a decompressor, or returns why it cannot.
func New() (*Decompressor, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	h := C.tj_new()
	if h == nil {
		return nil, errors.New("turbojpeg: no memory for a decompressor")
	}
	d := &Decompressor{}
	d.own(h)
	return d, nil
}

// Close frees the decompressor's memory now. Idempotent.
func (d *Decompressor) Close() {
	if d.h != nil {
		d.cleanup.Stop()
		C.tj_free(d.h)
		d.h = nil
	}
}

// err is the message of the last call.
// The library keeps some messages by thread, so the caller has locked its goroutine to one since the call that failed.
func (d *Decompressor) err() error {
	return errors.New("turbojpeg: " + strings.TrimSpace(C.GoString(C.tj_error(d.h))))
}

// renew replaces the handle. After a failure the library's is not always usable: after a file that ends after its first marker, say, every later
// one is refused with "two SOI markers" (seen with 2.1.5).
func (d *Decompressor) renew() {
	d.Close()
	if h := C.tj_new(); h != nil {
		d.own(h)
	}
}

func (d *Decompressor) own(h unsafe.Pointer) {
	d.h = h
	d.cleanup = runtime.AddCleanup(d, func(h unsafe.Pointer) { C.tj_free(h) }, h)
}

// Header reads size and colour model without decoding.
func (d *Decompressor) Header(src []byte) (Header, error) {
	if d.h == nil {
		return Header{}, errors.New("turbojpeg: decompressor is closed")
	}
	if len(src) == 0 {
		return Header{}, errors.New("turbojpeg: no data")
	}
	runtime.LockOSThread() // see err
	defer runtime.UnlockOSThread()
	r := C.tj_read_header(d.h, (*C.uchar)(unsafe.Pointer(&src[0])), C.ulong(len(src)))
	defer runtime.KeepAlive(d)
	if r.w <= 0 || r.h <= 0 { // a warning (rc -1) may come with a valid header
		defer d.renew()
		if r.rc == 0 {
			return Header{}, errors.New("turbojpeg: no picture in the file")
		}
		return Header{}, d.err()
	}
	hdr := Header{Width: int(r.w), Height: int(r.h)}
	switch r.color {
	case 0:
		hdr.Color = RGB
	case 1:
		hdr.Color = YCbCr
	case 2:
		hdr.Color = Gray
	case 3, 4:
		hdr.Color = CMYK
	default:
		return Header{}, fmt.Errorf("turbojpeg: unknown colour space %d", r.color)
	}
	return hdr, nil
}

// Decode writes the picture, scaled to 1/denom (1, 2, 4 or 8), into dst: interleaved rows of Scaled(width) × Scaled(height) pixels, three bytes
// each, or four as stored for CMYK. The DCT is the accurate one and chroma is interpolated, as Pillow does it.
//
// A damaged picture that still gives all its pixels comes with a warning, as Pillow accepts it too; one that ends too early is an error.
func (d *Decompressor) Decode(src []byte, hdr Header, denom int, dst []byte) (warning string, err error) {
	if d.h == nil {
		return "", errors.New("turbojpeg: decompressor is closed")
	}
	w, h, size, format := Scaled(hdr.Width, denom), Scaled(hdr.Height, denom), 3, pixelRGB
	if hdr.Color == CMYK {
		size, format = 4, pixelCMYK
	}
	if denom != 1 && denom != 2 && denom != 4 && denom != 8 {
		return "", fmt.Errorf("turbojpeg: scale 1/%d is not 1, 1/2, 1/4 or 1/8", denom)
	}
	if len(src) == 0 || w <= 0 || h <= 0 || len(dst) != w*h*size {
		return "", fmt.Errorf("turbojpeg: %d bytes of memory for %d x %d pixels of %d bytes", len(dst), w, h, size)
	}
	defer runtime.KeepAlive(d)
	runtime.LockOSThread() // see err
	defer runtime.UnlockOSThread()
	run := func(flags C.int) bool {
		return C.tj_decode(d.h, (*C.uchar)(unsafe.Pointer(&src[0])), C.ulong(len(src)), (*C.uchar)(unsafe.Pointer(&dst[0])),
			C.int(w), C.int(h), C.int(format), flagAccurateDCT|flagLimitScans|flags) == 0
	}
	// Stop at the first warning: "premature end" must not be covered up by a later, milder one.
	if run(flagStopOnWarning) {
		return "", nil
	}
	defer d.renew()
	if err := d.err(); C.tj_warning(d.h) == 0 || premature(err) {
		return "", err
	}
	first := d.err()
	if run(0) || C.tj_warning(d.h) != 0 && !premature(d.err()) {
		return strings.TrimPrefix(first.Error(), "turbojpeg: "), nil
	}
	return "", d.err()
}

// premature reports whether a warning means that the file ends inside the picture (libjpeg's JWRN_JPEG_EOF).
func premature(err error) bool { return strings.Contains(err.Error(), "Premature end of JPEG file") }
