package shm

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

func each(t *testing.T, g []comm.Communicator, f func(c comm.Communicator) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range g {
		wg.Go(func() {
			if err := f(c); err != nil {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
		})
	}
	wg.Wait()
}

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, n := range []int{1, 2, 3, 4} {
		g, err := NewLocal(n)
		if err != nil {
			t.Fatal(err)
		}
		each(t, g, func(c comm.Communicator) error {
			for _, elems := range []int64{0, 1, 100, 5000, 300000, 2000000} {
				b, err := c.Alloc(elems * 4)
				if err != nil {
					return err
				}
				m := comm.Mem{Ptr: nptr(b), Elems: elems, DType: 1}
				heap := make([]float32, elems)
				for _, m := range []comm.Mem{m, comm.HostOf(heap)} {
					v := comm.View[float32](m)
					for i := range v {
						v[i] = float32(c.Rank() + i%7)
					}
					if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
						return err
					}
					for i := range v {
						if want := float32(n*(n-1)/2 + n*(i%7)); v[i] != want {
							t.Errorf("n %d elems %d rank %d: [%d] = %v, want %v", n, elems, c.Rank(), i, v[i], want)
							break
						}
					}
				}
			}
			return nil
		})
		for _, c := range g {
			c.Close()
		}
	}
}
