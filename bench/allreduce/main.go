// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Command allreduce times gotrain's shared-memory all-reduce between processes: in-place sum of float32, 4 KiB to 256 MiB. It prints a JSON
// line a size, in the form of bench/peer/allreduce_gloo.py (median of the slowest rank).
//
//	go run ./bench/allreduce -world 2
//	go run ./bench/allreduce -world 2 -staged      # memory that did not come from the communicator
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/npu"
)

const rankVar, jobVar = "BENCH_ALLREDUCE_RANK", "BENCH_ALLREDUCE_JOB"

func main() {
	world := flag.Int("world", 2, "ranks")
	low := flag.Int("min", 4<<10, "smallest size in bytes")
	high := flag.Int("max", 256<<20, "largest size in bytes; sizes grow by four")
	staged := flag.Bool("staged", false, "reduce ordinary memory instead of memory from Alloc")
	flag.Parse()
	if *world < 1 || *low < 4 || *high < *low {
		fmt.Fprintln(os.Stderr, "allreduce: -world must be at least 1, -min at least 4, -max not below -min")
		os.Exit(2)
	}
	err := error(nil)
	if rank, is := os.LookupEnv(rankVar); is {
		err = measure(rank, *world, *low, *high, *staged)
	} else {
		err = spawn(*world)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "allreduce:", err)
		os.Exit(1)
	}
}

// spawn starts this program once a rank, each on a processor of its own where there are enough.
func spawn(world int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, world)
	for r := range world {
		args := append([]string{self}, os.Args[1:]...)
		if _, err := exec.LookPath("taskset"); err == nil && world <= runtime.NumCPU() {
			args = append([]string{"taskset", "-c", strconv.Itoa(r)}, args...)
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), rankVar+"="+strconv.Itoa(r), fmt.Sprintf("%s=allreduce-%d", jobVar, os.Getpid()))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() {
			err := cmd.Wait()
			if err != nil {
				err = fmt.Errorf("rank %d: %w", r, err)
			}
			done <- err
		}()
	}
	var first error
	for range world {
		if err := <-done; err != nil && first == nil {
			first = err
			cancel() // the others would wait for it
		}
	}
	return first
}

func measure(rank string, world, low, high int, staged bool) error {
	r, err := strconv.Atoi(rank)
	if err != nil {
		return fmt.Errorf("%s: %w", rankVar, err)
	}
	ctx := context.Background()
	c, err := shm.Join(ctx, shm.Config{Job: os.Getenv(jobVar), Rank: r, Size: world})
	if err != nil {
		return err
	}
	defer c.Close()
	for n := low; n <= high; n *= 4 {
		us, err := timeOne(ctx, c, n, staged)
		if err != nil {
			return fmt.Errorf("rank %d, %d bytes: %w", r, n, err)
		}
		if r == 0 {
			fmt.Printf("{\"peer\": \"gotrain\", \"op\": \"allreduce\", \"world\": %d, \"bytes\": %d, \"us\": %.1f, \"gb_s\": %.3f}\n", world, n, us, float64(n)/us/1e3)
		}
	}
	return nil
}

// timeOne is the median of several all-reduces of n bytes, of the slowest rank, in microseconds.
func timeOne(ctx context.Context, c comm.Communicator, n int, staged bool) (float64, error) {
	m := comm.HostOf(make([]float32, n/4))
	if !staged {
		buf, err := c.Alloc(int64(n))
		if err != nil {
			return 0, err
		}
		defer buf.Free()
		m = comm.Mem{Ptr: npu.Ptr{Buf: buf}, Elems: int64(n / 4), DType: npu.F32}
	}
	x := comm.View[float32](m)
	reps := 5
	switch {
	case n < 1<<20:
		reps = 100
	case n < 64<<20:
		reps = 20
	}
	var times []float64
	for i := range reps + 2 { // two to warm up
		for j := range x {
			x[j] = 1
		}
		if err := finish(c.Barrier(ctx)); err != nil {
			return 0, err
		}
		t := time.Now()
		if err := finish(c.AllReduce(ctx, m, comm.Sum)); err != nil {
			return 0, err
		}
		if i >= 2 {
			times = append(times, time.Since(t).Seconds()*1e6)
		}
	}
	if w := float32(c.Size()); x[0] != w || x[len(x)-1] != w {
		return 0, fmt.Errorf("the sum is %g, want %g", x[0], w)
	}
	slices.Sort(times)
	med := []float64{times[len(times)/2]}
	err := finish(c.AllReduce(ctx, comm.HostOf(med), comm.Max))
	return med[0], err
}

func finish(h comm.Handle, err error) error {
	if err != nil {
		return err
	}
	return h.Wait(context.Background())
}
