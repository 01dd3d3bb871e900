//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/npu"
)

// resNet50 lists the 53 convolutions of ResNet50 v1.5 at 224x224.
func resNet50(n int) []convCase {
	one := [2]int{1, 1}
	conv := func(in, out, hw, k, s int) convCase {
		p := k / 2
		return convCase{n, in, hw, hw, out, k, k, 1, [2]int{s, s}, one, [4]int{p, p, p, p}, false, false}
	}
	list := []convCase{conv(3, 64, 224, 7, 2)}
	in, hw := 64, 56
	for stage, blocks := range []int{3, 4, 6, 3} {
		mid := 64 << stage
		for b := range blocks {
			s := 1
			if b == 0 && stage > 0 {
				s = 2
			}
			list = append(list, conv(in, mid, hw, 1, 1), conv(mid, mid, hw, 3, s), conv(mid, 4*mid, hw/s, 1, 1))
			if b == 0 {
				list = append(list, conv(in, 4*mid, hw, 1, s))
			}
			in, hw = 4*mid, hw/s
		}
	}
	return list
}

func (c convCase) flop() float64 {
	oh, ow := c.out()
	return 2 * float64(c.n*c.o*oh*ow) * float64(c.c/c.groups*c.kh*c.kw)
}

// bindAll compiles ops and binds them to shared memory; arguments of different ops overlap.
func bindAll(g *rig, ops []npu.Op) []npu.Launch {
	g.t.Helper()
	size := map[int]int64{}
	var kernels []npu.Kernel
	for _, op := range ops {
		op, err := g.d.Choose(op)
		if err != nil {
			g.t.Fatal(err)
		}
		k, err := g.d.Compile(op)
		if err != nil {
			g.t.Fatal(err)
		}
		kernels = append(kernels, k)
		for i := range len(op.In) + len(op.Out) {
			d, _ := arg(op, i)
			size[i] = max(size[i], g.bytes(d))
		}
		size[-1] = max(size[-1], k.Workspace(), 1)
	}
	at := map[int]npu.Ptr{}
	r := rand.New(rand.NewPCG(1, 1))
	for i, n := range size {
		at[i] = g.alloc(n)
		b := at[i].Buf.Host()
		for j := 0; j+4 <= len(b); j += 4 { // 1.x in bf16 pairs and in f32
			v := uint16(0x3f80 | r.Uint32()&0x7f)
			b[j], b[j+1], b[j+2], b[j+3] = byte(v), byte(v>>8), byte(v), byte(v>>8)
		}
	}
	var list []npu.Launch
	for _, k := range kernels {
		var args []npu.Ptr
		for i := range len(k.Op().In) + len(k.Op().Out) {
			args = append(args, at[i])
		}
		l, err := k.Bind(args, at[-1])
		if err != nil {
			g.t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// threadTime is the processor time of the stream's thread: with one thread and a busy machine it says more than the clock.
func threadTime(g *rig) time.Duration {
	var u unix.Rusage
	g.s.Do(func() error { return unix.Getrusage(unix.RUSAGE_THREAD, &u) })
	g.sync()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bestThreadTime runs the launches b.N times, and reports and returns the least processor time that one run took.
func bestThreadTime(b *testing.B, g *rig, list []npu.Launch) time.Duration {
	g.s.Run(list)
	before := threadTime(g)
	best := time.Duration(0)
	b.ResetTimer()
	for range b.N {
		g.s.Run(list)
		now := threadTime(g)
		if took := now - before; best == 0 || took < best {
			best = took
		}
		before = now
	}
	b.StopTimer()
	b.ReportMetric(best.Seconds()*1e3, "best-cpu-ms")
	return best
}

// BenchmarkResNet50 runs all convolutions of ResNet50 and prints GFLOP/s for each kind, by the clock (GF/s) and by the least processor time
// of the thread (cpuGF/s, meaningful with one thread). Batch 16, one thread; $BATCH, $THREADS and $LAYOUT change that. What a bare C
// program reaches with the same library is the mark: see docs/decisions/0002-onednn-by-dlopen.md.
//
//	go test -run ^$ -bench ResNet50 -benchtime 3x ./npu/cpu
func BenchmarkResNet50(b *testing.B) {
	number := func(key string, def int) int {
		if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
			return n
		}
		return def
	}
	cases := resNet50(number("BATCH", 16))
	for _, lib := range libraries(b) {
		for _, dt := range floatTypes {
			for i, kind := range []string{"fwd", "bwd_data", "bwd_weights"} {
				b.Run(fmt.Sprintf("%s/%s/%s", shortName(lib), dt, kind), func(b *testing.B) {
					d := open(b, npu.Options{Threads: number("THREADS", 1), Extra: map[string]string{"onednn": lib, "layout": os.Getenv("LAYOUT")}})
					g := newRig(b, d)
					var ops []npu.Op
					flop := 0.0
					for _, c := range cases {
						if i == 1 && c.c == 3 {
							continue
						}
						flop += c.flop()
						ops = append(ops, c.ops(dt)[i])
					}
					list := bindAll(g, ops)
					best := bestThreadTime(b, g, list)
					b.ReportMetric(flop*float64(b.N)/1e9/b.Elapsed().Seconds(), "GF/s")
					b.ReportMetric(flop/1e9/best.Seconds(), "cpuGF/s")
				})
			}
		}
	}
}

// BenchmarkWeights converts the weights of ResNet50 from the layout of their gradients, in f32, to those of the forward and backward convolutions.
func BenchmarkWeights(b *testing.B) {
	for _, lib := range libraries(b) {
		for _, dt := range floatTypes {
			b.Run(fmt.Sprintf("%s/%s", shortName(lib), dt), func(b *testing.B) {
				d := open(b, npu.Options{Threads: 1, Extra: map[string]string{"onednn": lib, "layout": os.Getenv("LAYOUT")}})
				g := newRig(b, d)
				var ops []npu.Op
				var bytes int64
				for _, c := range resNet50(16) {
					list := c.ops(dt)
					master := must(d.Choose(list[2]))(b).Out[0]
					for i := range 2 {
						w := must(d.Choose(list[i]))(b).In[1]
						if !w.Equal(master) {
							op := must(d.Choose(npu.Op{Kind: npu.Convert, In: []npu.Desc{master}, Out: []npu.Desc{w}}))(b)
							ops = append(ops, op)
							bytes += g.bytes(master) + g.bytes(w)
						}
					}
				}
				if len(ops) == 0 {
					b.Skip("all layouts are equal")
				}
				list := bindAll(g, ops)
				b.ReportMetric(float64(bytes)/1e9/bestThreadTime(b, g, list).Seconds(), "cpuGB/s")
			})
		}
	}
}

// BenchmarkAlloc maps and touches 1 GiB: what the arena costs at start.
func BenchmarkAlloc(b *testing.B) {
	d := open(b, npu.Options{Threads: 2, Extra: map[string]string{"onednn": "off"}})
	for range b.N {
		m := must(d.Alloc(1 << 30))(b)
		if err := m.Free(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBatchNorm runs the 53 batch normalisations of ResNet50, with ReLU, forward and backward.
func BenchmarkBatchNorm(b *testing.B) {
	for _, dt := range floatTypes {
		for i, kind := range []string{"fwd", "bwd"} {
			for _, l := range []npu.Layout{NHWC, NChw16c} {
				b.Run(fmt.Sprintf("%s/%s/%s", dt, kind, l), func(b *testing.B) {
					g := newRig(b, open(b, npu.Options{Threads: 1, Extra: map[string]string{"onednn": libraries(b)[0]}}))
					var ops []npu.Op
					for _, c := range resNet50(16) {
						oh, ow := c.out()
						x, v := npu.D(dt, c.n, c.o, oh, ow).With(l), npu.D(npu.F32, c.o)
						a := npu.Attrs{"eps": 1e-5, "momentum": 0.1, "relu": true}
						ops = append(ops, []npu.Op{
							{Kind: npu.BatchNorm, Attrs: a, In: []npu.Desc{x, v, v, v, v}, Out: []npu.Desc{x, v, v, v, v}},
							{Kind: npu.BatchNormBwd, Attrs: a, In: []npu.Desc{x, x, v, v, v, v, x}, Out: []npu.Desc{x, v, v}}}[i])
					}
					list := bindAll(g, ops)
					bestThreadTime(b, g, list)
				})
			}
		}
	}
}

// BenchmarkStart opens the device and prepares all convolutions of ResNet50 and their gradients: the part of a start that the
// device has.
func BenchmarkStart(b *testing.B) {
	for _, lib := range libraries(b) {
		for _, dt := range floatTypes {
			b.Run(fmt.Sprintf("%s/%s", shortName(lib), dt), func(b *testing.B) {
				for range b.N {
					d := must(Open(npu.Options{Threads: 1, Extra: map[string]string{"onednn": lib}}))(b)
					for _, c := range resNet50(16) {
						for _, op := range c.ops(dt) {
							must(d.Compile(must(d.Choose(op))(b)))(b)
						}
					}
					d.Close()
				}
			})
		}
	}
}
