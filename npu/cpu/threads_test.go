//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"os"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// threads is the set of this process's threads. Sets are compared, not counts: a thread of an earlier test may end at any time.
func threads(t *testing.T) map[string]bool {
	d, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	set := make(map[string]bool, len(d))
	for _, e := range d {
		set[e.Name()] = true
	}
	return set
}

// The compute stream has a team of all threads; the kernels of a second stream start none.
func TestSecondStreamHasOneThread(t *testing.T) {
	d := open(t, npu.Options{Threads: 3, Extra: map[string]string{"onednn": libraries(t)[0]}})
	g := newRig(t, d)
	x := npu.D(npu.F32, 1<<20)
	p := g.alloc(x.PlainBytes())
	k := must(d.Compile(must(d.Choose(npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{x}}))(t)))(t)
	batch := []npu.Launch{must(k.Bind([]npu.Ptr{p, p}, npu.Ptr{}))(t)}
	started := func(s npu.Stream) int {
		before := threads(t)
		if err := s.Run(batch); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for id := range threads(t) {
			if !before[id] {
				n++
			}
		}
		return n
	}
	if n := started(g.s); n < 2 {
		t.Errorf("the first kernel of a stream with 3 threads started %d, want 2", n)
	}
	// Go's runtime may start threads of its own meanwhile; a team would be two more on every stream.
	least := 2
	for i := 0; i < 5 && least > 1; i++ {
		comm := must(d.NewStream("comm"))(t)
		least = min(least, started(comm))
		comm.Close()
	}
	if least > 1 {
		t.Error("each second stream started a team of threads")
	}
}

// A stream that is closed gives the threads back: the measurement of the peak, at Open, must not leave the trainer's stream with one.
func TestThreadsGoToTheNextStream(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the machine, which takes long in an emulator")
	}
	d := open(t, npu.Options{Threads: 2, Extra: map[string]string{"onednn": libraries(t)[0], "calibrate": "true"}})
	s := must(d.NewStream("compute"))(t).(*stream)
	defer s.Close()
	if !s.compute || s.threads != 2 {
		t.Errorf("the first stream after Open has %d threads, want 2", s.threads)
	}
}
