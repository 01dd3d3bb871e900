//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/queue"
)

type event struct {
	queue.Event
	dev *Device
}

var _ npu.Event = (*event)(nil)

// NewEvent returns an event that counts as reached until it is recorded.
func (d *Device) NewEvent() (npu.Event, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	e := &event{dev: d}
	e.Init("cpu", d.opened)
	return e, nil
}
