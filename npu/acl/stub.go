//go:build !(cgo && linux)

package acl

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

func init() {
	npu.Register("npu", priority, func(npu.Options) (npu.Device, error) {
		return nil, fmt.Errorf("npu: open: this binary was built without cgo or not for Linux, and CANN needs both: %w\n"+
			"hint: build it on Linux with CGO_ENABLED=1 and a C compiler", npu.ErrAbsent)
	})
	npu.RegisterCounter("npu", func() (int, error) { return 0, nil })
}
