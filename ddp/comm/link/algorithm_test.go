package link

import (
	"math"
	"testing"
	"time"
)

// wires are the links of the model's table: latency and payload, 0.1 s to add a GB, 4 µs for each peer.
var wires = map[string]Link{
	"1G":   {Latency: 40 * time.Microsecond, Bandwidth: 0.94e9 / 8, PerPeer: 4 * time.Microsecond, Reduce: 1e-10},
	"10G":  {Latency: 25 * time.Microsecond, Bandwidth: 9.4e9 / 8, PerPeer: 4 * time.Microsecond, Reduce: 1e-10},
	"25G":  {Latency: 20 * time.Microsecond, Bandwidth: 23.5e9 / 8, PerPeer: 4 * time.Microsecond, Reduce: 1e-10},
	"100G": {Latency: 15 * time.Microsecond, Bandwidth: 60e9 / 8, PerPeer: 4 * time.Microsecond, Reduce: 1e-10},
}

// The table was computed independently of this package; its numbers are rounded to a microsecond.
func TestModel(t *testing.T) {
	const k, m = 1 << 10, 1 << 20
	for _, c := range []struct {
		w    int
		wire string
		n    int64
		a    Algorithm
		us   float64
	}{
		{2, "1G", k, Exchange, 49}, {2, "1G", k, Direct, 89}, {2, "1G", 16 * k, Exchange, 181}, {2, "1G", 16 * k, Direct, 220},
		{2, "1G", 128 * k, Exchange, 1169}, {2, "1G", 128 * k, Direct, 1202}, {2, "1G", m, Direct, 9056}, {2, "1G", m, Circle, 9056},
		{2, "10G", k, Exchange, 26}, {2, "10G", k, Direct, 51}, {2, "10G", 16 * k, Exchange, 41}, {2, "10G", 16 * k, Direct, 65},
		{2, "10G", 128 * k, Exchange, 150}, {2, "10G", 128 * k, Direct, 168}, {2, "10G", m, Direct, 995},
		{2, "100G", k, Exchange, 15}, {2, "100G", k, Direct, 30}, {2, "100G", 16 * k, Exchange, 19}, {2, "100G", 16 * k, Direct, 33},
		{2, "100G", 128 * k, Exchange, 46}, {2, "100G", 128 * k, Direct, 54}, {2, "100G", m, Direct, 222},
		{4, "1G", k, Exchange, 74}, {4, "1G", k, Direct, 109}, {4, "1G", k, Circle, 253}, {4, "1G", 16 * k, Direct, 306}, {4, "1G", 16 * k, Circle, 450},
		{4, "1G", 128 * k, Direct, 1779}, {4, "1G", 128 * k, Circle, 1923}, {4, "1G", m, Direct, 13561}, {4, "1G", m, Circle, 13705},
		{4, "10G", k, Exchange, 36}, {4, "10G", k, Direct, 67}, {4, "10G", k, Circle, 151}, {4, "10G", 16 * k, Exchange, 80}, {4, "10G", 16 * k, Direct, 88},
		{4, "10G", 16 * k, Circle, 172}, {4, "10G", 128 * k, Direct, 243}, {4, "10G", 128 * k, Circle, 327}, {4, "10G", m, Direct, 1483}, {4, "10G", m, Circle, 1567},
		{4, "25G", k, Exchange, 29}, {4, "25G", k, Direct, 57}, {4, "25G", k, Circle, 121}, {4, "25G", 16 * k, Exchange, 50}, {4, "25G", 16 * k, Direct, 66},
		{4, "25G", 16 * k, Circle, 130}, {4, "25G", 128 * k, Direct, 133}, {4, "25G", 128 * k, Circle, 197}, {4, "25G", m, Direct, 670}, {4, "25G", m, Circle, 734},
		{6, "10G", k, Exchange, 46}, {6, "10G", k, Direct, 84}, {6, "10G", k, Circle, 252}, {6, "10G", 16 * k, Direct, 107}, {6, "10G", 16 * k, Circle, 275},
		{6, "10G", 128 * k, Direct, 279}, {6, "10G", 128 * k, Circle, 447}, {6, "10G", m, Direct, 1657},
		{8, "25G", k, Exchange, 47}, {8, "25G", k, Direct, 89}, {8, "25G", k, Circle, 281}, {8, "25G", 16 * k, Exchange, 95}, {8, "25G", 16 * k, Direct, 99},
		{8, "25G", 16 * k, Circle, 291}, {8, "25G", 128 * k, Direct, 178}, {8, "25G", m, Direct, 804}, {8, "25G", m, Circle, 996},
		{16, "25G", k, Exchange, 83}, {16, "25G", k, Direct, 153}, {16, "25G", k, Circle, 601}, {16, "25G", 16 * k, Direct, 164}, {16, "25G", 128 * k, Direct, 248},
		{16, "25G", m, Direct, 920}, {16, "25G", m, Circle, 1368},
		{64, "25G", k, Direct, 537}, {64, "25G", k, Circle, 2521}, {64, "25G", 16 * k, Direct, 549}, {64, "25G", 128 * k, Direct, 637}, {64, "25G", m, Direct, 1342},
		{64, "25G", m, Circle, 3326},
	} {
		got := float64(wires[c.wire].AllReduce(c.a, c.w, c.n)) / 1e3
		if math.Round(got) != c.us {
			t.Errorf("%d ranks, %s, %d bytes, %v: %.2f µs, want %v", c.w, c.wire, c.n, c.a, got, c.us)
		}
	}
}

func TestModelLarge(t *testing.T) { // 25 MiB, in ms, rounded to three digits
	for _, c := range []struct {
		w    int
		wire string
		ms   float64
	}{
		{2, "1G", 224}, {2, "10G", 23.7}, {2, "100G", 4.8}, {4, "1G", 337}, {4, "10G", 35.5}, {4, "25G", 15.4}, {6, "10G", 39.5}, {8, "25G", 18.0},
		{16, "25G", 19.3}, {64, "25G", 20.7},
	} {
		got := float64(wires[c.wire].AllReduce(Direct, c.w, 25<<20)) / 1e6
		if math.Abs(got-c.ms) > max(0.051, c.ms*0.003) {
			t.Errorf("%d ranks, %s: %.2f ms, want %v", c.w, c.wire, got, c.ms)
		}
	}
}

func TestHalves(t *testing.T) {
	for name, l := range wires {
		for _, w := range []int{2, 4, 16} {
			for _, n := range []int64{0, 1 << 10, 1 << 24} {
				if a, b := l.Scatter(w, n)+l.Share(w, n), l.AllReduce(Direct, w, n); (a - b).Abs() > 2 {
					t.Errorf("%s, %d ranks: halves of %d bytes take %v, the mesh %v", name, w, n, a, b)
				}
			}
		}
	}
}

func TestChain(t *testing.T) {
	l := Link{Bandwidth: 1e9}
	if got := l.AllReduce(Chain, 2, 1e6); got != time.Millisecond {
		t.Errorf("2 ranks: %v, want 1ms: both directions at once", got)
	}
	if got := l.AllReduce(Chain, 4, 1e6); got != 2*time.Millisecond {
		t.Errorf("4 ranks: %v, want 2ms", got)
	}
}

func TestGather(t *testing.T) {
	l := wires["25G"]
	for w, rounds := range map[int]int64{2: 1, 3: 2, 4: 2, 5: 3, 8: 3, 64: 6} {
		more := l.AllReduce(Gather, w, 0) - l.AllReduce(Exchange, w, 0)
		if more != time.Duration(rounds)*l.Latency {
			t.Errorf("%d ranks: the result takes %v to return, want %d messages", w, more, rounds)
		}
	}
}

func TestAlone(t *testing.T) {
	l := wires["10G"]
	for a := Exchange; a <= Circle; a++ {
		if d := l.AllReduce(a, 1, 1<<20); d != 0 {
			t.Errorf("%v of one rank takes %v", a, d)
		}
	}
	if l.Share(1, 1<<20) != 0 || l.Bound(1, 1<<20) != 0 {
		t.Error("one rank waits for nobody")
	}
}

func TestBound(t *testing.T) {
	for name, l := range wires {
		for _, w := range []int{2, 3, 8} {
			for a := Exchange; a <= Circle; a++ {
				if got, least := l.AllReduce(a, w, 1<<20), l.Bound(w, 1<<20); got < least && a != Chain {
					t.Errorf("%s, %d ranks: %v takes %v, less than the wire's bound %v", name, w, a, got, least)
				}
			}
		}
	}
}
