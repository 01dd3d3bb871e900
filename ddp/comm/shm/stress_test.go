package shm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// TestStress makes many calls of random kinds and sizes with random pauses, on as many ranks as processors and on twice as many. Besides
// right results it wants no lost wake-up: one would not hang, but cost a slice of sleep.
func TestStress(t *testing.T) {
	calls := 3000
	if testing.Short() {
		calls = 500
	}
	for _, n := range []int{2, 4} {
		g, err := NewLocal(n)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		each(t, g, func(c comm.Communicator) error { return hammer(c, calls) })
		missed := int64(0)
		for _, c := range g {
			missed += c.(*Comm).missed.Load()
			c.Close()
		}
		t.Logf("%d ranks: %v per call", n, time.Since(begin)/time.Duration(calls))
		// A flag that comes just when the slice ends looks like a lost wake-up; on a busy machine that happens now and then.
		if missed > int64(calls/500) {
			t.Errorf("%d ranks: %d lost wake-ups in %d calls", n, missed, calls)
		}
	}
}

func hammer(c comm.Communicator, calls int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	common, own := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, uint64(c.Rank())))
	buf, err := c.Alloc(4 * 100000)
	if err != nil {
		return err
	}
	shared := comm.Mem{Ptr: nptr(buf), Elems: 100000, DType: 5} // i32
	heap := comm.HostOf(make([]int32, 100000))
	for i := range calls {
		m := shared.Slice(0, 1+int64(common.IntN(1<<common.IntN(17))))
		if common.IntN(3) == 0 && own.IntN(2) == 0 { // some ranks only
			m = heap.Slice(0, m.Elems)
		}
		root := common.IntN(c.Size() * 3)
		v := comm.View[int32](m)
		v[0], v[len(v)-1] = int32(c.Rank()+i), int32(c.Rank()+i)
		switch own.IntN(20) {
		case 0:
			time.Sleep(time.Duration(own.IntN(300)) * time.Microsecond)
		case 1, 2, 3:
			runtime.Gosched()
		}
		want := int32(c.Size()*(c.Size()-1)/2 + c.Size()*i)
		if root < c.Size() {
			err = comm.Wait(ctx)(c.Broadcast(ctx, m, root))
			want = int32(root + i)
		} else {
			err = comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum))
		}
		if err != nil {
			return err
		}
		if v[0] != want || v[len(v)-1] != want {
			return &wrong{i, v[0], v[len(v)-1], want}
		}
	}
	return nil
}

type wrong struct {
	call              int
	first, last, want int32
}

func (w *wrong) Error() string { return fmt.Sprintf("%+v", *w) }

// TestNoLeaks opens and closes groups: goroutines, descriptors and mappings must not pile up.
func TestNoLeaks(t *testing.T) {
	count := func() (goroutines, descriptors int) {
		fds, _ := os.ReadDir("/proc/self/fd")
		return runtime.NumGoroutine(), len(fds)
	}
	g0, f0 := count()
	for range 20 {
		g, err := NewLocal(3)
		if err != nil {
			t.Fatal(err)
		}
		each(t, g, func(c comm.Communicator) error { return hammer(c, 10) })
		for _, c := range g {
			c.Close()
		}
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g1, f1 := count()
		if g1 <= g0+1 && f1 <= f0+1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines %d, then %d; descriptors %d, then %d", g0, g1, f0, f1)
		}
	}
}
