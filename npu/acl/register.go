//go:build cgo && linux

package acl

import "github.com/gotrain/gotrain/npu"

func init() {
	npu.Register("npu", priority, func(o npu.Options) (npu.Device, error) { return Open(o) })
	npu.RegisterCounter("npu", func() (int, error) { return here().count() })
	npu.RegisterLocator("npu", func(index int) (int, error) { return here().node(index) })
}
