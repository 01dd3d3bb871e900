//go:build cgo && linux && (amd64 || arm64)

package cpu

// #include "command.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/gotrain/gotrain/npu"
)

// runBatch executes each run of consecutive C kernels with one C call, so that the goroutine does not give up its processor between kernels: while other
// goroutines decode images on all processors, each return from C could wait for milliseconds.
func (s *stream) runBatch(batch []npu.Launch, profile bool) error {
	for i := 0; i < len(batch) && !s.skips(); {
		n := 0
		for n < chunkLen && i+n < len(batch) {
			l := batch[i+n].(*launch) // checked by Run
			if l.fn == nil {
				break
			}
			s.commands[n] = C.gt_command{fn: C.gt_fn(l.fn), self: l.self}
			n++
		}
		var err error
		if n > 0 {
			err = s.runC(batch[i:i+n], profile)
		} else {
			n = 1
			err = s.runGo(batch[i].(*launch), profile)
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

func (s *stream) runC(batch []npu.Launch, profile bool) error {
	var stream unsafe.Pointer
	if s.dnn != nil {
		stream = s.dnn.Handle()
	}
	times := &s.times[0]
	if !profile {
		times = nil
	}
	n := int(C.gt_run(&s.commands[0], C.int(len(batch)), stream, times, s.status, (*C.uint32_t)(unsafe.Pointer(s.skip)), s.inTeam))
	if profile {
		for i := range n {
			s.Sample(npu.Sample{Launch: batch[i], Begin: time.Duration(int64(s.times[i].begin) - s.born), Dur: time.Duration(s.times[i].dur)})
		}
	}
	if n == len(batch) {
		return nil
	}
	l := batch[n].(*launch)
	return fmt.Errorf("%s: %w", l.kernel.op, l.runner.fault(int(*s.status)))
}

func (s *stream) runGo(l *launch, profile bool) error {
	begin := int64(C.gt_now())
	if err := l.runner.run(); err != nil {
		return fmt.Errorf("%s: %w", l.kernel.op, err)
	}
	if profile {
		end := int64(C.gt_now())
		s.Sample(npu.Sample{Launch: l, Begin: time.Duration(begin - s.born), Dur: time.Duration(end - begin)})
	}
	return nil
}
