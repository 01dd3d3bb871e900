package tcp

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"golang.org/x/sys/unix"
)

const envSizes = "TCP_BENCH_BYTES" // largest

// bench is a rank of BenchmarkProcesses: it prints the median of every size, in microseconds.
func bench(ctx context.Context, c *Comm) error {
	most, _ := strconv.ParseInt(os.Getenv(envSizes), 10, 64)
	buf, err := c.Alloc(most)
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		fmt.Println("link", c.Link().String(), c.Describe()[0].Notes)
	}
	for n := int64(4 << 10); n <= most; n *= 4 {
		m := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: n / 4, DType: npu.F32}
		reps := 200
		if n >= 1<<20 {
			reps = 20
		}
		var took []float64
		for i := range reps + 2 {
			if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
				return err
			}
			clear(comm.View[float32](m)[:min(n/4, 1024)])
			begin := time.Now()
			if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
				return err
			}
			if i >= 2 {
				took = append(took, time.Since(begin).Seconds()*1e6)
			}
		}
		slices.Sort(took)
		if c.Rank() == 0 {
			fmt.Printf("BENCH %d %.1f\n", n, took[len(took)/2])
		}
	}
	return nil
}

// BenchmarkProcesses measures blocking all-reduces between processes, each bound to a processor as far as there are enough.
func BenchmarkProcesses(b *testing.B) {
	for _, world := range []int{2, 4} {
		b.Run(strconv.Itoa(world), func(b *testing.B) {
			for range b.N {
				b.Setenv(envSizes, strconv.Itoa(16<<20))
				procs := start(b, "bench", world, "", func(rank int) []string {
					return []string{"taskset", "-c", strconv.Itoa(rank % runtime.NumCPU())}
				})
				for r, p := range procs {
					if err := p.wait(b, time.Minute); err != nil {
						b.Fatalf("rank %d: %v: %s", r, err, p.out)
					}
				}
				b.Log(procs[0].out.String())
			}
		})
	}
}

// TestUnix keeps the layout that message relies on: a span is an address and a length, each a word.
func TestUnix(t *testing.T) {
	var v unix.Iovec
	v.SetLen(5)
	var m message
	m.add(address(0), 5)
	if v.Len != uint64(m.iov[0].n) {
		t.Error(v, m.iov[0])
	}
}
