//go:build !cgo || !(linux || darwin) || !(amd64 || arm64)

package augment

// Whether there are C kernels.
const native = false

func warpFast(p, old *Pixels, m *matrix, fill *[3]byte) {}
func colourFast(p *Pixels, factor float64)              {}
func sharpnessFast(p, old *Pixels, factor float64)      {}
func hueFast(p *Pixels, shift byte)                     {}
