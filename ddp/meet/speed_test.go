package meet

import (
	"fmt"
	"testing"
	"time"
)

// fullMesh joins ranks and connects all pairs; it returns how long that took.
func fullMesh(t testing.TB, world int) time.Duration {
	begun := time.Now()
	groups := join(t, world, nil)
	onAll(groups, func(g *Group) {
		conns, err := g.Connect(t.Context(), 1, all(world))
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() {
			for _, c := range conns {
				if c != nil {
					c.Close()
				}
			}
		})
	})
	return time.Since(begun)
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
