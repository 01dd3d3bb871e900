package baseline

import (
	"errors"
	"image"
	"math"
)

// Decoder decodes one file at a time. It keeps its memory, so each goroutine needs its own. The zero value is ready.
type Decoder struct {
	f      frame
	ready  bool
	tables [8]huffman // DC 0…3, AC 0…3
	made   [8][]byte  // what the tables were made of
	data   []byte     // without stuffing
	planes []byte
	job    job
	plain  bool // use the kernels in Go; for tests
}

// kernels are the three loops over data.
type kernels interface {
	// unstuff copies the data of one restart interval without stuffing. It returns how many bytes were written, how many read, and the marker that ended them,
	// 0 if none did.
	unstuff(dst, src []byte) (written, used, marker int)
	// mcus decodes the MCUs from first to last-1 into planes. src is n bytes of data with padding behind them. whole: no data must be left.
	mcus(j *job, t *[8]huffman, src []byte, n int, first, last int64, whole bool, planes []byte) bool
	// color writes the region as RGB.
	color(j *job, planes, rgb []byte)
}

// padding behind the data: an MCU of six blocks takes at most 6 × 64 × 31 bits.
const padding = 2048

// Size is that of the picture that Parse has seen.
func (d *Decoder) Size() (w, h int) { return d.f.w, d.f.h }

// Decode writes the region r of the picture that Parse has seen into dst: rows of red, green and blue bytes, as long as the region is wide. src is what
// Parse was given.
func (d *Decoder) Decode(src []byte, r image.Rectangle, dst []byte) error {
	f := &d.f
	if !d.ready || r.Empty() || !r.In(image.Rect(0, 0, f.w, f.h)) || f.end+2 > len(src) {
		return errors.New("baseline: no picture was parsed, or the region is not in it")
	}
	if len(dst) != 3*r.Dx()*r.Dy() {
		return errors.New("baseline: the memory does not have the size of the region")
	}
	j := &d.job
	scratch := j.set(f, r)
	if scratch > math.MaxInt32 { // the offsets of a job
		return ErrOther
	}
	if cap(d.planes) < scratch {
		d.planes = make([]byte, scratch)
	}
	planes := d.planes[:scratch]
	if need := f.end + 2 - f.scan + padding; cap(d.data) < need {
		d.data = make([]byte, need+need/4)
	}
	k := d.kernels(j)
	if !d.scan(k, j, src[f.scan:f.end+2], planes) {
		return ErrDamaged
	}
	k.color(j, planes, dst)
	return nil
}

// scan decodes restart interval after restart interval, as far as the region needs.
func (d *Decoder) scan(k kernels, j *job, src, planes []byte) bool {
	data := d.data[:cap(d.data)]
	_, all, needed := j.mcus()
	interval := int64(j.restart)
	if interval == 0 {
		interval = all
	}
	for first, i := int64(0), 0; first < needed; first, i = first+interval, i+1 {
		n, used, marker := k.unstuff(data[:len(data)-padding], src)
		clear(data[n : n+padding])
		src = src[used:]
		end := min(first+interval, all)
		if want := 0xd0 + i&7; end < all && marker != want || end == all && marker != eoi {
			return false
		}
		if !k.mcus(j, &d.tables, data[:n+padding], n, first, min(end, needed), end <= needed, planes) {
			return false
		}
	}
	return true
}

// Keep limits the memory that the decoder keeps to n bytes of each kind.
func (d *Decoder) Keep(n int) {
	if cap(d.data) > n {
		d.data = nil
	}
	if cap(d.planes) > n {
		d.planes = nil
	}
}
