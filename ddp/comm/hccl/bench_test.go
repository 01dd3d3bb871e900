//go:build cgo && linux

package hccl

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu/acl/acltest"
)

// BenchmarkIssue measures how long the host is busy with a reduction behind an event, before it can go on.
func BenchmarkIssue(b *testing.B) {
	acltest.Use(b)
	m := onFake(b, 2, map[string]string{"hccl_buffer_mb": "4"}).must()
	var wg sync.WaitGroup
	var issue [2]time.Duration
	for r, c := range m.ranks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			mem := memory(c, 1000)
			defer mem.Ptr.Buf.Free()
			ev, err := c.port.NewEvent()
			if err != nil {
				b.Error(err)
				return
			}
			defer ev.Close()
			for range b.N {
				begin := time.Now()
				h, err := c.AllReduceAfter(ctx, ev, mem, comm.Max)
				issue[r] += time.Since(begin)
				if err == nil {
					err = h.Wait(ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(issue[0].Nanoseconds())/float64(b.N), "ns/issue")
	m.close()
}
