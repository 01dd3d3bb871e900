//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"os"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func threadCount(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(d)
}

// The compute stream has a team of all threads; the kernels of a second stream start none.
func TestSecondStreamHasOneThread(t *testing.T) {
	d := open(t, npu.Options{Threads: 3, Extra: map[string]string{"onednn": libraries(t)[0]}})
	g := newRig(t, d)
	comm := must(d.NewStream("comm"))(t)
	x := npu.D(npu.F32, 1<<20)
	p := g.alloc(x.PlainBytes())
	k := must(d.Compile(must(d.Choose(npu.Op{Kind: npu.Relu, In: []npu.Desc{x}, Out: []npu.Desc{x}}))(t)))(t)
	batch := []npu.Launch{must(k.Bind([]npu.Ptr{p, p}, npu.Ptr{}))(t)}
	run := func(s npu.Stream) int {
		if err := s.Run(batch); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		return threadCount(t)
	}
	before := threadCount(t)
	compute := run(g.s)
	if compute < before+2 {
		t.Errorf("%d threads before, %d after a kernel of a stream with 3", before, compute)
	}
	// Go's runtime may start a thread of its own; a team would be two more.
	if after := run(comm); after > compute+1 {
		t.Errorf("%d threads, %d after a kernel of the second stream", compute, after)
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
