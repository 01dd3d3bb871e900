//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
)

// The suite that every device passes, in all layouts of pictures.
func TestSuite(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *Device) {
		nputest.Run(t, d, nputest.Options{Layouts: []npu.Layout{npu.Plain, NHWC, NChw16c}})
		if lacking := nputest.Lacking(d); len(lacking) > 0 {
			t.Errorf("lacks %v", lacking)
		}
	})
}
