package link

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The column of the table was found on a coarse grid of sizes: it is right within 15 %, or 0.7 KiB.
func TestEqual(t *testing.T) { // in KiB
	for _, c := range []struct {
		w    int
		wire string
		kib  float64
	}{{2, "1G", 800}, {2, "10G", 500}, {2, "100G", 310}, {4, "1G", 3}, {4, "10G", 21}, {4, "25G", 38}, {6, "10G", 14}, {8, "25G", 19}, {16, "25G", 13}} {
		got := wires[c.wire].Equal(Auto, c.w) / 1024
		if math.Abs(got-c.kib) > max(0.7, 0.15*c.kib) {
			t.Errorf("%d ranks, %s: %.1f KiB, want %v", c.w, c.wire, got, c.kib)
		}
	}
}

func TestCrossoverIsClamped(t *testing.T) {
	for _, c := range []struct {
		w    int
		wire string
		t    Topology
		want int64
	}{
		{2, "1G", Auto, MaxCrossover},
		{4, "1G", Mesh, MinCrossover},
		{4, "1G", Ring, MinCrossover},
		{1, "1G", Auto, MinCrossover},
	} {
		if got := wires[c.wire].Crossover(c.t, c.w); got != c.want {
			t.Errorf("%v, %d ranks, %s: %d, want %d", c.t, c.w, c.wire, got, c.want)
		}
	}
	for w := 33; w < 200; w += 7 {
		for name, l := range wires {
			if got := l.Crossover(Auto, w); got > tiny || got < MinCrossover {
				t.Errorf("%s, %d ranks: %d", name, w, got)
			}
		}
	}
	free := Link{Bandwidth: 1e9} // no latency: every step is free
	if got := free.Crossover(Auto, 4); got != MinCrossover {
		t.Errorf("a link without latency: %d", got)
	}
}

func TestChooseTakesTheCheaper(t *testing.T) {
	for name, l := range wires {
		for w := 2; w <= crowd; w++ {
			for n := int64(MinCrossover); n < MaxCrossover; n += 3 << 10 {
				a := l.Choose(Auto, w, n)
				other := Exchange + Direct - a
				if x, y := l.AllReduce(a, w, n), l.AllReduce(other, w, n); x > y+2 {
					t.Fatalf("%s, %d ranks, %d bytes: %v takes %v, %v would take %v", name, w, n, a, x, other, y)
				}
			}
		}
	}
}

func TestChooseKeepsTheTopology(t *testing.T) {
	l := wires["25G"]
	for _, c := range []struct {
		t            Topology
		w            int
		small, large Algorithm
	}{
		{Auto, 4, Exchange, Direct}, {Mesh, 4, Exchange, Direct}, {Tree, 4, Gather, Chain}, {Ring, 4, Exchange, Circle},
		{Auto, 64, Gather, Direct}, {Ring, 64, Gather, Circle},
	} {
		if a, b := l.Choose(c.t, c.w, 100), l.Choose(c.t, c.w, 25<<20); a != c.small || b != c.large {
			t.Errorf("%v, %d ranks: %v and %v, want %v and %v", c.t, c.w, a, b, c.small, c.large)
		}
	}
}

func TestSays(t *testing.T) {
	l := wires["10G"]
	if got, want := l.Says(Auto, 4), "exchange below 21 KiB, mesh from there (4 ranks, 9.4 Gbit/s, 25µs)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := l.Says(Ring, 4); !strings.Contains(got, "ring from there") || !strings.Contains(got, "rounding") {
		t.Errorf("%q does not warn", got)
	}
	if got := l.Says(Auto, 1); got != "one rank: nothing to send" {
		t.Errorf("%q", got)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 21 << 10: "21 KiB", 1 << 20: "1 MiB", 3 << 19: "1.5 MiB", 25 << 20: "25 MiB", 1 << 30: "1024 MiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	l := wires["10G"]
	rows := l.Table(Auto, 4)
	if len(rows) != 2 || rows[0].From != 0 || rows[0].Algorithm != Exchange || rows[1].From != l.Crossover(Auto, 4) || rows[1].Name != "mesh" {
		t.Fatalf("%+v", rows)
	}
	if rows[0].Time.Round(time.Microsecond) != 36*time.Microsecond {
		t.Errorf("a kibibyte takes %v", rows[0].Time)
	}
}
