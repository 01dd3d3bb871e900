package train

import (
	"errors"

	"github.com/gotrain/gotrain/npu"
)

// pinned is the host memory that the device copies asynchronously: batches, outputs, and the numbers of a step. A device of separate memory locks it.
type pinned struct {
	dev  npu.Device
	bufs []npu.Buffer
}

// alloc returns zeroed memory that lives until close.
func (p *pinned) alloc(n int64) ([]byte, error) {
	b, err := npu.AllocHost(p.dev, n)
	if err != nil {
		return nil, err
	}
	p.bufs = append(p.bufs, b)
	return b.Host(), nil
}

// close frees everything. The device must be idle.
func (p *pinned) close() error {
	var errs []error
	for _, b := range p.bufs {
		errs = append(errs, b.Free())
	}
	p.bufs = nil
	return errors.Join(errs...)
}
