package tcp_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/tcp"
	"github.com/gotrain/gotrain/npu"
)

// Three ranks of one process sum a vector over loopback. With Open and a *meet.Group in place of NewLocal they would be processes on several hosts.
func Example() {
	group, err := tcp.NewLocal(3, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, c := range group {
		wg.Go(func() {
			defer c.Close()
			buf, err := c.Alloc(4 * 4)
			if err != nil {
				fmt.Println(err)
				return
			}
			m := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: 4, DType: npu.F32}
			v := comm.View[float32](m)
			for i := range v {
				v[i] = float32(c.Rank() * i)
			}
			ctx := context.Background()
			if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
				fmt.Println(err)
				return
			}
			if c.Rank() == 2 {
				fmt.Println("rank 2 holds", v)
			}
		})
	}
	wg.Wait()
	// Output: rank 2 holds [0 3 6 9]
}
