//go:build !cgo || !(linux || darwin) || !(amd64 || arm64)

package images

import "github.com/gotrain/gotrain/train/data/images/augment"

// These draw with vector instructions; here there are none.

func (c *canvas) drawFast(*Picture, View, int, int, []*levels, []float32) bool { return false }

func (c *canvas) drawFastBytes(*Picture, View, int, int) bool { return false }

func emitFast(*augment.Pixels, []*levels, []float32) bool { return false }
