//go:build cgo && linux && (amd64 || arm64)

package cpu

import "github.com/gotrain/gotrain/npu"

var _ npu.Algorithmic = (*Device)(nil)

// Algorithms implements npu.Algorithmic.
func (d *Device) Algorithms(op npu.Op) []string { return []string{npu.Direct} }
