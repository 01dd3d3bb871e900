//go:build !cgo || !(linux || darwin) || !(amd64 || arm64)

package augment

// Whether there are C kernels.
const native = false

var level = func() int { return 0 }

func warpFast(p, old *Pixels, m *matrix, fill *[3]byte) {}
func colourFast(p *Pixels, factor float64)              {}
func sharpnessFast(p, old *Pixels, factor float64)      {}
func hueFast(p *Pixels, shift byte)                     {}
func greySumFast(p *Pixels) int                         { return 0 }
func mapFast(pix []byte, t *[256]byte) bool             { return false }
func mapChannelsFast(p *Pixels, t *[3][256]byte) bool   { return false }
