//go:build cgo && linux

package acl

import (
	"context"
	"sync"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// gauges are what the driver tells about the device. Asking costs a system call or more, so the answer counts for a while: trainers ask at every step.
type gauges struct {
	mu     sync.Mutex
	at     time.Time
	load   int   // percent; negative: unknown
	memory int64 // bytes in use; negative: unknown
}

const gaugeAge = time.Second

var (
	_ npu.Utilization = (*Device)(nil)
	_ npu.MemoryUse   = (*Device)(nil)
)

// Utilization is the load of the cube units, or of the vector units where CANN does not tell that of the cubes.
func (d *Device) Utilization() (percent float64, ok bool) {
	load, _ := d.read()
	return float64(load), load >= 0
}

// MemoryUse is the memory of the device that is in use, by this process and others.
func (d *Device) MemoryUse() (bytes int64, ok bool) {
	_, memory := d.read()
	return memory, memory >= 0
}

// read asks the driver, unless the last answer is young. An answer that does not come soon is none.
func (d *Device) read() (load int, memory int64) {
	g := &d.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.thread.alive() != nil {
		return -1, -1
	}
	if time.Since(g.at) < gaugeAge {
		return g.load, g.memory
	}
	g.at, g.load, g.memory = time.Now(), -1, -1
	limit, cancel := context.WithTimeout(context.Background(), gaugeAge)
	defer cancel()
	answer := make(chan [2]int64, 1)      // fn may outlive this call
	_ = d.thread.do(limit, func() error { // without an answer there are no gauges
		a := [2]int64{-1, -1}
		cube, vector, err := d.lib.Utilization(d.index)
		if err == nil {
			if cube < 0 {
				cube = vector
			}
			a[0] = int64(cube)
		}
		free, total, merr := d.lib.MemInfo()
		if merr == nil {
			a[1] = total - free
		}
		answer <- a
		if err == nil {
			err = merr
		}
		return err
	})
	select {
	case a := <-answer:
		g.load, g.memory = int(a[0]), a[1]
	default:
	}
	return g.load, g.memory
}
