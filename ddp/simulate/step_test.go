package simulate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/npu"
)

const ms = time.Millisecond

// flat is a network without latency on which 2 ranks reduce a MB in a millisecond.
var flat = link.Cluster{Ranks: 2, Hosts: 2, Link: link.Link{Bandwidth: 1e9}}

// cutAt makes buckets of 1 MB parameters; each bucket has the given number of them.
func cutAt(t testing.TB, ranks int, sizes ...int64) *bucket.Plan {
	t.Helper()
	var ps []bucket.Param
	for i, n := range sizes {
		ps = append(ps, bucket.Param{Name: string(rune('a' + i)), Elems: n * 250000, DType: npu.F32})
	}
	p, err := bucket.New(ps, bucket.Config{CapBytes: 1, FirstBytes: 1, LastBytes: 1, World: ranks})
	if err != nil || len(p.Buckets) != len(sizes) {
		t.Fatalf("%d buckets: %v", len(p.Buckets), err)
	}
	return p
}

func mustRun(t testing.TB, s Step) Result {
	t.Helper()
	r, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near compares times up to the rounding of a bucket's size to whole lines.
func near(a, b time.Duration) bool { return (a - b).Abs() < 5*time.Microsecond }

func TestOverlap(t *testing.T) {
	c := Compute{Forward: 2 * ms, Ready: []time.Duration{4 * ms, 5 * ms, 9 * ms}, End: 9 * ms}
	r := mustRun(t, Step{Buckets: cutAt(t, 2, 3, 1, 1), Compute: c, Cluster: flat})
	for k, want := range []time.Duration{7 * ms, 8 * ms, 10 * ms} { // the second waits for the wire, the third for its gradients
		if !near(r.Landed[k], want) {
			t.Errorf("bucket %d landed at %v, want %v", k, r.Landed[k], want)
		}
	}
	if !near(r.Exposed, ms) || !near(r.Time, 10*ms) || !near(r.Wire, 5*ms) || r.Alone != 9*ms || r.Efficiency() > 0.91 || r.Efficiency() < 0.89 {
		t.Errorf("%+v, efficiency %.3f", r, r.Efficiency())
	}
}

func TestUpdatesHideWhatFollows(t *testing.T) {
	c := Compute{Ready: []time.Duration{ms, ms}, End: ms, Update: 2e-9, Rest: 5 * ms}
	s := Step{Buckets: cutAt(t, 2, 1, 1), Compute: c, Cluster: flat}
	r := mustRun(t, s) // landed at 2 and 3 ms; updates from 2 to 4 and from 4 to 6 ms
	if !near(r.Exposed, ms) || !near(r.Time, 11*ms) {
		t.Errorf("%+v", r)
	}
	s.Together = true // updates from 3 to 7 ms
	if r := mustRun(t, s); !near(r.Exposed, 2*ms) || !near(r.Time, 12*ms) {
		t.Errorf("with a limit of the norm: %+v", r)
	}
}

func TestBucketsWaitForTheVote(t *testing.T) {
	cl := link.Cluster{Ranks: 2, Hosts: 2, Link: link.Link{Bandwidth: 1e9, Latency: ms / 2}}
	c := Compute{Forward: 4 * ms, Ready: []time.Duration{4 * ms}, End: 4 * ms}
	r := mustRun(t, Step{Buckets: cutAt(t, 2, 1), Compute: c, Cluster: cl}) // half for the vote, and two halves and the bytes for the bucket
	if !near(r.Landed[0], 4*ms+3*ms/2+ms) {
		t.Errorf("landed at %v", r.Landed[0])
	}
}

func TestOneRank(t *testing.T) {
	c := Compute{Ready: []time.Duration{ms}, End: 2 * ms, Update: 1e-9, Rest: ms}
	r := mustRun(t, Step{Buckets: cutAt(t, 1, 1), Compute: c, Cluster: link.Cluster{Ranks: 1, Hosts: 1}})
	if r.Exposed != 0 || !near(r.Time, 4*ms) || r.Efficiency() != 1 {
		t.Errorf("%+v", r)
	}
}

// A codec of two phases: half the bytes, 1 ms to encode a MB, 2 ms to add, 3 ms to decode.
func TestPhases(t *testing.T) {
	codec := Codec{Name: "c", Ratio: 0.5, Encode: 1e9, Sum: 0.5e9, Decode: 1e9 / 3}
	c := Compute{Ready: []time.Duration{0}, End: 0}
	s := Step{Buckets: cutAt(t, 2, 4), Compute: c, Cluster: flat, Codec: codec}
	// encode 4, exchange 1, add 8 and encode a half 2, gather 1, decode 12
	if r := mustRun(t, s); !near(r.Exposed, 28*ms) || !near(r.Wire, 2*ms) {
		t.Errorf("one bucket: %+v", r)
	}
	s.Buckets, s.Compute.Ready = cutAt(t, 2, 4, 4), []time.Duration{0, 0}
	if r := mustRun(t, s); !near(r.Landed[0], 28*ms) || !near(r.Landed[1], 40*ms) { // the second is decoded behind the first
		t.Errorf("two buckets overlap: %+v", r)
	}
	s.OneGroup = true // the second begins to be encoded when the first is on its last way: 15, and takes 4+1+10+1; then it is decoded behind the first
	if r := mustRun(t, s); !near(r.Landed[0], 28*ms) || !near(r.Landed[1], 43*ms) {
		t.Errorf("two buckets in one group: %+v", r)
	}
	s.OneGroup = false
	one := Codec{Name: "h", Ratio: 0.5, Encode: 1e9, Decode: 1e9}
	s.Codec = one
	if r := mustRun(t, s); !near(r.Landed[0], 10*ms) || !near(r.Landed[1], 14*ms) { // encode 4, reduce 2, decode 4
		t.Errorf("one phase: %+v", r)
	}
}

// On hosts of two ranks each rank has half of the work, and sums and gathering inside the host have a wire of their own.
func TestPhasesBetweenHosts(t *testing.T) {
	codec := Codec{Name: "c", Ratio: 0.5, Encode: 1e9, Sum: 0.5e9, Decode: 1e9 / 3}
	c := Compute{Ready: []time.Duration{0}, End: 0}
	hosts := link.Cluster{Ranks: 4, Hosts: 2, Link: flat.Link, Local: link.Link{Bandwidth: 2e9}}
	s := Step{Buckets: cutAt(t, 4, 4), Compute: c, Cluster: hosts, Codec: codec}
	// add up inside 1, encode 2, exchange 1, add 4 and encode a quarter 1, gather 1, decode 6, gather inside 1
	if r := mustRun(t, s); !near(r.Exposed, 17*ms) || !near(r.Wire, 4*ms) {
		t.Errorf("two phases: %+v", r)
	}
	s.Codec = Codec{Name: "h", Ratio: 0.5, Encode: 1e9, Decode: 1e9}
	if r := mustRun(t, s); !near(r.Exposed, 8*ms) { // 1, encode 2, reduce 2, decode 2, 1
		t.Errorf("one phase: %+v", r)
	}
	// Inside and between hosts do not share: the second bucket is added up while the first is exchanged.
	s.Codec = Codec{Name: "c", Ratio: 1, Encode: 1e18, Sum: 1e18, Decode: 1e18}
	s.Buckets, s.Compute = cutAt(t, 4, 4, 4), Compute{Ready: []time.Duration{0, ms}, End: ms}
	// first: 1, then 2 and 2 between hosts, the second's 2 from 3 on shares them: at 5 both have had 1, at 7 the first gathers
	if r := mustRun(t, s); !near(r.Landed[0], 8*ms) || !near(r.Landed[1], 10*ms) {
		t.Errorf("two buckets: %+v", r.Landed)
	}
}

// The more ranks a host has, the more codecs are worth on a slow network: they send as much however many there are.
func TestCodecsOnManyRanks(t *testing.T) {
	c := Compute{Ready: []time.Duration{0}, End: 0}
	for _, each := range []int{1, 2, 8} {
		s := Step{Buckets: cutAt(t, 2*each, 40), Compute: c, Cluster: link.Cluster{Ranks: 2 * each, Hosts: 2, Link: link.Link{Bandwidth: 1.2e8}}}
		last := mustRun(t, s).Exposed
		for _, name := range []string{"bf16", "int8"} {
			s.Codec, _ = CodecOf(name)
			r := mustRun(t, s)
			if float64(r.Exposed) > 0.65*float64(last) {
				t.Errorf("%d ranks a host: %s takes %v, what is larger %v", each, name, r.Exposed, last)
			}
			last = r.Exposed
		}
	}
}

func TestLanesShareTheWire(t *testing.T) {
	codec := Codec{Name: "c", Ratio: 1, Encode: 1e18, Sum: 1e18, Decode: 1e18}
	c := Compute{Ready: []time.Duration{0, 2 * ms}, End: 2 * ms}
	r := mustRun(t, Step{Buckets: cutAt(t, 2, 4, 4), Compute: c, Cluster: flat, Codec: codec})
	// alone until 2; then phase 1 of the first and phase 0 of the second share until both have had 2: 6; then phase 1 of the second
	if !near(r.Landed[0], 6*ms) || !near(r.Landed[1], 8*ms) || !near(r.Wire, 8*ms) {
		t.Errorf("%+v", r)
	}
}

// random makes a step that may occur.
func random(t testing.TB, r *rand.Rand) Step {
	n := 1 + r.IntN(12)
	sizes, c := make([]int64, n), Compute{Update: r.Float64() * 1e-10, Rest: time.Duration(r.IntN(1e6))}
	at := time.Duration(r.IntN(1e7))
	c.Forward = at
	for i := range sizes {
		sizes[i] = 1 + r.Int64N(20)
		at += time.Duration(r.IntN(4e6))
		c.Ready = append(c.Ready, at)
	}
	c.End = at + time.Duration(r.IntN(1e6))
	hosts, per := 1+r.IntN(8), 1+r.IntN(4)
	s := Step{Compute: c, Cluster: link.Cluster{Ranks: hosts * per, Hosts: hosts, Link: link.Link{
		Latency: time.Duration(r.IntN(1e5)), Bandwidth: 1e8 + r.Float64()*5e9, PerPeer: 4000, Reduce: 1e-10}}}
	s.Buckets = cutAt(t, s.Cluster.Ranks, sizes...)
	if r.IntN(2) == 0 {
		s.Codec = Codecs[r.IntN(len(Codecs))]
	}
	s.OneGroup, s.Together = r.IntN(2) == 0, r.IntN(2) == 0
	return s
}

func TestInvariants(t *testing.T) {
	for seed := range uint64(3000) {
		s := random(t, rand.New(rand.NewPCG(seed, 1)))
		r := mustRun(t, s)
		if r.Exposed < 0 || r.Time < r.Alone-time.Duration(len(r.Landed)) || (r.Time-r.Alone-r.Exposed).Abs() > time.Duration(len(r.Landed)+2) {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		last := time.Duration(0)
		for k, at := range r.Landed {
			if at < last || at < s.Compute.Ready[k] {
				t.Fatalf("seed %d: bucket %d landed at %v: %+v", seed, k, at, r)
			}
			last = at
		}
		if s.Codec.Name != "" {
			continue
		}
		least, err := Bound(s)
		if err != nil || least.Exposed > r.Exposed+time.Duration(len(r.Landed)+2) {
			t.Fatalf("seed %d: exposed %v, less than the bound %v: %v", seed, r.Exposed, least.Exposed, err)
		}
		s.Cluster.Link.Bandwidth *= 2
		if f := mustRun(t, s); f.Exposed > r.Exposed+time.Duration(len(r.Landed)+2) {
			t.Fatalf("seed %d: a faster link exposes %v, the slower %v", seed, f.Exposed, r.Exposed)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := func() Step {
		return Step{Buckets: cutAt(t, 2, 1), Cluster: flat, Compute: Compute{Ready: []time.Duration{ms}, End: 2 * ms}}
	}
	for want, change := range map[string]func(*Step){
		"times of 0 gradients for 1": func(s *Step) { s.Compute.Ready = nil },
		"gradient 0 is ready at 3ms": func(s *Step) { s.Compute.Ready[0] = 3 * ms },
		"forward 9ms":                func(s *Step) { s.Compute.Forward = 9 * ms },
		"a bandwidth of 0":           func(s *Step) { s.Cluster.Link.Bandwidth = 0 },
		"evenly":                     func(s *Step) { s.Cluster.Ranks = 3 },
	} {
		s := good()
		change(&s)
		if _, err := Run(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Run(good()); err != nil {
		t.Error(err)
	}
}

func TestCodecOf(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "none": true, "f16": true, "bf16": true, "int8": true, "int4": false} {
		c, found := CodecOf(name)
		if found != ok || ok && name != "" && name != "none" && c.Name != name {
			t.Errorf("%q: %+v %v", name, c, found)
		}
	}
}
