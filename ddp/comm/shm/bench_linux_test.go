package shm

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/npu"
	"golang.org/x/sys/unix"
)

// BenchmarkAllReduce measures float32 sums between processes, in memory from Alloc: median of 11 repeats, as the reference
// programs do, each process on a processor of its own. GB/s is bytes of one rank ÷ time.
//
//	go test -run xxx -bench AllReduce -benchtime 1x ./ddp/comm/shm
func BenchmarkAllReduce(b *testing.B) {
	for _, ranks := range []int{2, 4} {
		for bytes := int64(4 << 10); bytes <= 256<<20; bytes *= 4 {
			b.Run(fmt.Sprintf("ranks=%d/bytes=%d", ranks, bytes), func(b *testing.B) {
				for b.Loop() {
					us := measure(b, ranks, bytes)
					b.ReportMetric(us, "us/op")
					b.ReportMetric(float64(bytes)/us/1e3, "GB/s")
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}

// measure starts the processes and gives the median in microseconds.
func measure(b *testing.B, ranks int, bytes int64) float64 {
	b.Helper()
	var procs []*proc
	for r := range ranks {
		procs = append(procs, start(b, jobID(b), "bench", r, ranks, envArg+"="+strconv.FormatInt(bytes, 10)))
	}
	for _, p := range procs {
		if err := <-p.done; err != nil {
			b.Fatal(err, p.out)
		}
	}
	us, err := strconv.ParseFloat(strings.TrimSpace(procs[0].out.String()), 64)
	if err != nil {
		b.Fatal(err)
	}
	return us
}

// pin binds this process to one processor, as gotrain's launcher does.
func pin(rank int) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(rank % runtime.NumCPU())
	for _, t := range tasks {
		id, _ := strconv.Atoi(t.Name())
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return err
		}
	}
	return nil
}

// bench is one rank of the measurement.
func bench(ctx context.Context, c comm.Communicator) error {
	bytes, err := strconv.ParseInt(os.Getenv(envArg), 10, 64)
	if err != nil {
		return err
	}
	buf, err := c.Alloc(bytes)
	if err != nil {
		return err
	}
	m := comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: bytes / 4, DType: npu.F32}
	n := 1
	switch {
	case bytes < 1<<20:
		n = 200
	case bytes < 32<<20:
		n = 5
	}
	var times []float64
	for i := range 13 {
		if err := comm.Wait(ctx)(c.Barrier(ctx)); err != nil {
			return err
		}
		begin := time.Now()
		for range n {
			if err := comm.Wait(ctx)(c.AllReduce(ctx, m, comm.Sum)); err != nil {
				return err
			}
		}
		if i > 1 { // two to warm up
			times = append(times, time.Since(begin).Seconds()/float64(n))
		}
	}
	slices.Sort(times)
	if c.Rank() == 0 {
		fmt.Printf("%.3f\n", 1e6*times[len(times)/2])
	}
	return nil
}
