package meet

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fullMesh joins ranks and connects all pairs; it returns how long that took. Then it ends the job.
func fullMesh(t testing.TB, world int) time.Duration {
	place, groups := inProcess(), make([]*Group, world)
	begun := time.Now()
	var wg sync.WaitGroup
	var took atomic.Int64
	var met sync.WaitGroup
	met.Add(world)
	for r := range world {
		wg.Go(func() {
			var err error
			var conns []*net.TCPConn
			if groups[r], err = Join(t.Context(), config(t, place, r, world)); err == nil {
				conns, err = groups[r].Connect(t.Context(), 1, all(world))
			}
			took.Store(max(took.Load(), int64(time.Since(begun))))
			if err != nil {
				t.Errorf("%.400s", err.Error())
			}
			met.Done()
			met.Wait()
			for _, c := range conns {
				if c != nil {
					c.Close()
				}
			}
			if groups[r] != nil {
				groups[r].Close()
			}
		})
	}
	wg.Wait()
	return time.Duration(took.Load())
}

// A rendezvous and a full mesh are quick: 4 ranks take a few milliseconds on loopback, 64 in one process a few hundred. The bounds are for a busy machine.
func TestStartIsQuick(t *testing.T) {
	for world, bound := range map[int]time.Duration{4: 5 * time.Second, 64: 30 * time.Second} {
		d := fullMesh(t, world)
		t.Logf("%d ranks: %v", world, d)
		if d > bound {
			t.Errorf("%d ranks took %v, more than %v", world, d, bound)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for _, world := range []int{4, 64} {
		b.Run(fmt.Sprint(world, "ranks"), func(b *testing.B) {
			for b.Loop() {
				fullMesh(b, world)
			}
		})
	}
}

// The hot path of a collective stores its number and nothing else.
func TestProgressAllocatesNothing(t *testing.T) {
	g := join(t, 1, func(c *Config) { c.Place = Place{Addr: "127.0.0.1:" + freePort(t)} })[0]
	n := int64(0)
	if a := testing.AllocsPerRun(100, func() { n++; g.Progress(n) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
