//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// BenchmarkLinearCrossEntropy is the head of a language model, 2048 rows and 32000 classes; "grad" is loss and gradients in one.
func BenchmarkLinearCrossEntropy(b *testing.B) {
	for _, lib := range libraries(b) {
		for _, dim := range []int{288, 512} {
			for _, dt := range floatTypes {
				for _, threads := range []int{1, 2} {
					for i, name := range []string{"loss", "bwd", "grad"} {
						b.Run(fmt.Sprintf("%s/%d/%s/%d/%s", shortName(lib), dim, dt, threads, name), func(b *testing.B) {
							op := linearCEOps(dt, 2048, 32000, dim)[i]
							g := newRig(b, open(b, npu.Options{Threads: threads, Extra: map[string]string{"onednn": lib}}))
							bestTime(b, g, []npu.Launch{bindRandom(g, op)})
						})
					}
				}
			}
		}
	}
}

// bindRandom binds an op to memory of its own: small values, and labels among the first classes.
func bindRandom(g *rig, op npu.Op) npu.Launch {
	g.t.Helper()
	op = must(g.d.Choose(op))(g.t)
	r := rand.New(rand.NewPCG(2, 2))
	var args []npu.Ptr
	for i := range len(op.In) + len(op.Out) {
		d, _ := arg(op, i)
		args = append(args, g.upload(d, tensor(d.With(npu.Plain), func(int) float64 { return float64(r.IntN(4)) / 8 })))
	}
	g.sync()
	k := must(g.d.Compile(op))(g.t)
	return must(k.Bind(args, g.alloc(max(k.Workspace(), 1))))(g.t)
}

// bestTime runs the launches b.N times, and reports and returns the least time of one run by the clock.
func bestTime(b *testing.B, g *rig, list []npu.Launch) time.Duration {
	g.s.Run(list)
	g.sync()
	best := time.Duration(0)
	b.ResetTimer()
	for range b.N {
		t := time.Now()
		g.s.Run(list)
		g.sync()
		if took := time.Since(t); best == 0 || took < best {
			best = took
		}
	}
	b.StopTimer()
	b.ReportMetric(best.Seconds()*1e3, "best-ms")
	return best
}

// BenchmarkLinear is the three products of a linear layer, 2048 rows: y = x·wᵀ, dx = dy·w, dw = dyᵀ·x.
func BenchmarkLinear(b *testing.B) {
	for _, lib := range libraries(b) {
		for _, s := range [][2]int{{288, 288}, {288, 768}, {768, 288}, {512, 512}, {512, 1376}, {1376, 512}} {
			for _, dt := range floatTypes {
				x, y, w := npu.D(dt, 2048, s[0]), npu.D(dt, 2048, s[1]), npu.D(dt, s[1], s[0])
				for i, name := range []string{"y", "dx", "dw"} {
					b.Run(fmt.Sprintf("%s/%d-%d/%s/%s", shortName(lib), s[0], s[1], dt, name), func(b *testing.B) {
						op := []npu.Op{
							{Kind: npu.MatMul, Attrs: npu.Attrs{"tb": true}, In: []npu.Desc{x, w}, Out: []npu.Desc{y}},
							{Kind: npu.MatMul, In: []npu.Desc{y, w}, Out: []npu.Desc{x}},
							{Kind: npu.MatMul, Attrs: npu.Attrs{"ta": true}, In: []npu.Desc{y, x}, Out: []npu.Desc{npu.D(npu.F32, s[1], s[0])}},
						}[i]
						g := newRig(b, open(b, npu.Options{Threads: 1, Extra: map[string]string{"onednn": lib}}))
						best := bestTime(b, g, []npu.Launch{bindRandom(g, op)})
						b.ReportMetric(2*2048*float64(s[0]*s[1])/1e9/best.Seconds(), "GF/s")
					})
				}
			}
		}
	}
}
