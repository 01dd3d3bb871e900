//go:build cgo && linux && (amd64 || arm64)

package kern_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/cpu/kern"
)

// benchOp runs op on fresh memory in huge pages; MB/s counts the bytes that the algorithm must read and write, every pass over memory once. best-GB/s is that
// of the fastest run; with one thread it counts processor time, so that it means something on a busy machine too.
func benchOp(b *testing.B, op npu.Op, bytes int64, inplace map[int]int, small map[int][]byte) {
	call, ok := kern.Prepare(op)
	if !ok {
		b.Fatalf("no kernel for %s", op)
	}
	total := call.Workspace() + 64<<10
	for _, d := range append(append([]npu.Desc{}, op.In...), op.Out...) {
		total += d.PlainBytes() + 4096
	}
	m := newMemory(b, int(total))
	defer m.free()
	syscall.Madvise(m.mem, 14) // MADV_HUGEPAGE
	r := rand.New(rand.NewPCG(1, 1))
	sample := random(r, npu.D(npu.F32, 4096))
	var args []unsafe.Pointer
	for i, d := range op.In {
		mem := m.take(d.PlainBytes())
		if v := small[i]; v != nil {
			copy(mem, v)
		} else {
			for at := 0; at < len(mem); at += len(sample) {
				if copy(mem[at:], sample); d.DType == npu.BF16 {
					for j := at; j < min(at+len(sample), len(mem)); j += 2 {
						mem[j+1] = mem[j+1]&0x81 | 0x3e // of moderate size
					}
				}
			}
		}
		args = append(args, ptr(mem))
	}
	for i, d := range op.Out {
		if in, ok := inplace[i]; ok {
			args = append(args, args[in])
		} else {
			args = append(args, ptr(m.take(d.PlainBytes())))
		}
	}
	cmd, err := call.Bind(args, ptr(m.take(call.Workspace())), 0)
	if err == nil {
		err = cmd.Run(1) // touches what has not been yet
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			b.SetBytes(bytes)
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			clock := map[bool]int32{true: unix.CLOCK_THREAD_CPUTIME_ID, false: unix.CLOCK_MONOTONIC}[threads == 1]
			best := time.Hour
			for b.Loop() {
				start := now(clock)
				if err := cmd.Run(threads); err != nil {
					b.Fatal(err)
				}
				best = min(best, now(clock)-start)
			}
			b.ReportMetric(float64(bytes)/float64(best.Nanoseconds()), "best-GB/s")
		})
	}
}

func now(clock int32) time.Duration {
	var t unix.Timespec
	unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano())
}

// BenchmarkBatchNorm: forward reads x twice and writes y; backward reads dy, x (and y, or not if own) twice and writes dx.
func BenchmarkBatchNorm(b *testing.B) {
	for _, s := range [][]int{{16, 64, 112, 112}, {16, 256, 56, 56}, {16, 128, 28, 28}, {16, 1024, 14, 14}, {16, 2048, 7, 7}} {
		for _, dt := range acts {
			for _, l := range layouts(s[1]) {
				x, v := in(dt, l, s...), npu.D(npu.F32, s[1])
				n := x.PlainBytes()
				name := fmt.Sprintf("%v%v@%s", dt, x.Shape, l)
				stat := map[int][]byte{4: positive(s[1]), 5: positive(s[1])}
				fwd := npu.Op{Kind: npu.BatchNorm, Attrs: npu.Attrs{"relu": true}, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}}
				b.Run("fwd/relu/"+name, func(b *testing.B) { benchOp(b, fwd, 3*n, nil, stat) })
				for _, own := range []bool{false, true} {
					passes := map[bool]int64{false: 7, true: 5}[own]
					bwd := npu.Op{
						Kind:  npu.BatchNormBwd,
						Attrs: npu.Attrs{"relu": true, "own_y": own},
						In:    []npu.Desc{x, x, v, v, v, v, x},
						Out:   []npu.Desc{x, v, v},
					}
					b.Run(fmt.Sprintf("bwd/relu/own=%v/%s", own, name), func(b *testing.B) { benchOp(b, bwd, passes*n, nil, stat) })
				}
				all := npu.Op{
					Kind:  npu.BatchNormBwd,
					Attrs: npu.Attrs{"relu": true, "add": true, "sum": true},
					In:    []npu.Desc{x, x, v, v, v, v, x, x},
					Out:   []npu.Desc{x, v, v, x},
				}
				b.Run("bwd/relu_add_sum/"+name, func(b *testing.B) { benchOp(b, all, 8*n, nil, stat) })
			}
		}
	}
}

func BenchmarkAddRelu(b *testing.B) {
	for _, dt := range acts {
		x := npu.D(dt, 16, 256, 56, 56)
		op := npu.Op{Kind: npu.Binary, Attrs: npu.Attrs{"fn": "add", "relu": true}, In: []npu.Desc{x, x}, Out: []npu.Desc{x}}
		b.Run(dt.String(), func(b *testing.B) { benchOp(b, op, 3*x.PlainBytes(), nil, nil) })
	}
}

// BenchmarkOptimizer: a bucket of 25 MiB.
func BenchmarkOptimizer(b *testing.B) {
	const n = 25 << 18
	h, v := npu.D(npu.F32, 8), npu.D(npu.F32, n)
	hyper := map[int][]byte{0: make([]byte, 36)}
	for i, x := range []float64{1e-3, 1, 0.9, 0.99, 1e-8, 0.01, 0.1, 0.01, 1} {
		put(hyper[0], i, npu.F32, x)
	}
	sgd := npu.Op{Kind: npu.SGD, Attrs: npu.Attrs{"has_momentum": true}, In: []npu.Desc{h, v, v, v}, Out: []npu.Desc{v, v}}
	b.Run("sgd", func(b *testing.B) { benchOp(b, sgd, 20*n, map[int]int{0: 1, 1: 3}, hyper) })
	adam := npu.Op{Kind: npu.AdamW, In: []npu.Desc{npu.D(npu.F32, 9), v, v, v, v}, Out: []npu.Desc{v, v, v}}
	b.Run("adamw", func(b *testing.B) { benchOp(b, adam, 28*n, map[int]int{0: 1, 1: 3, 2: 4}, hyper) })
	sum := npu.Op{Kind: npu.SumSq, In: []npu.Desc{v}, Out: []npu.Desc{npu.D(npu.F64, 2)}}
	b.Run("sumsq", func(b *testing.B) { benchOp(b, sum, 4*n, nil, nil) })
}

// BenchmarkCrossEntropy: forward reads the logits twice, backward reads and writes once.
func BenchmarkCrossEntropy(b *testing.B) {
	for _, s := range [][]int{{16, 1000}, {1024, 32000}} {
		x, l, rows, f := npu.D(npu.F32, s...), npu.D(npu.I32, s[0]), npu.D(npu.F32, s[0]), npu.D(npu.F32)
		lb := map[int][]byte{1: labels(rand.New(rand.NewPCG(1, 1)), s[0], s[1])}
		fwd := npu.Op{Kind: npu.CrossEntropy, In: []npu.Desc{x, l}, Out: []npu.Desc{f, f, rows}}
		b.Run(fmt.Sprint("fwd/", s), func(b *testing.B) { benchOp(b, fwd, 2*x.PlainBytes(), nil, lb) })
		bwd := npu.Op{Kind: npu.CrossEntropyBwd, In: []npu.Desc{x, l, rows, f}, Out: []npu.Desc{x}}
		b.Run(fmt.Sprint("bwd/", s), func(b *testing.B) { benchOp(b, bwd, 2*x.PlainBytes(), nil, lb) })
	}
}
