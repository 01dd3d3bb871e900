package ddp

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
)

// looker copies device memory that the host cannot access, on a stream of its own. It is opened when it is first needed.
type looker struct {
	stream npu.Stream
	copier *npu.Copier
}

// copier returns the engine's Copier.
func (e *Engine) copier() (*npu.Copier, error) {
	if e.look.copier != nil {
		return e.look.copier, nil
	}
	if e.cfg.Device == nil {
		return nil, fmt.Errorf("the host cannot access the memory\nhint: set Config.Device to the device that it belongs to")
	}
	s, err := e.cfg.Device.NewStream("check")
	if err != nil {
		return nil, err
	}
	e.look = looker{s, npu.NewCopier(e.cfg.Device, s)}
	return e.look.copier, nil
}

func (l *looker) close() error {
	if l.stream == nil {
		return nil
	}
	err := errors.Join(l.copier.Close(), l.stream.Close())
	*l = looker{}
	return err
}
