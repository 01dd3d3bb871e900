//go:build !cgo || !(linux || darwin) || !(amd64 || arm64)

package images

// drawFast draws with vector instructions; here there are none.
func (c *canvas) drawFast(*Picture, View, int, int, []*levels, []float32) bool { return false }
