//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// pairsShapes are the convolutions of ResNet50 whose weight gradients in bf16 have a choice: in, out, rows and columns of pixels, kernel, stride.
var pairsShapes = [][5]int{
	{64, 64, 56, 1, 1}, {64, 256, 56, 1, 1}, {256, 64, 56, 1, 1}, {256, 128, 56, 1, 1}, {128, 512, 28, 1, 1}, {512, 128, 28, 1, 1}, {512, 256, 28, 1, 1},
	{256, 1024, 14, 1, 1}, {1024, 256, 14, 1, 1}, {1024, 512, 14, 1, 1}, {512, 2048, 7, 1, 1}, {2048, 512, 7, 1, 1},
	{256, 512, 56, 1, 2}, {512, 1024, 28, 1, 2}, {1024, 2048, 14, 1, 2}, {128, 128, 56, 3, 2}, {256, 256, 28, 3, 2}, {512, 512, 14, 3, 2},
}

func pairsCase(n int, s [5]int) convCase {
	p := s[3] / 2
	return convCase{n, s[0], s[2], s[2], s[1], s[3], s[3], 1, [2]int{s[4], s[4]}, [2]int{1, 1}, [4]int{p, p, p, p}, false, false}
}

// BenchmarkPairs runs both algorithms of the weight gradients of ResNet50 in bf16 in turn. $BATCH (16) and $THREADS (1) change the op.
//
//	go test -run ^$ -bench Pairs -benchtime 8x ./npu/cpu
func BenchmarkPairs(b *testing.B) {
	for _, s := range pairsShapes {
		b.Run(fmt.Sprintf("%dto%d/%dx%d/k%ds%d", s[0], s[1], s[2], s[2], s[3], s[4]), func(b *testing.B) {
			d := open(b, npu.Options{Threads: number("THREADS", 1)})
			op := pairsCase(number("BATCH", 16), s).ops(npu.BF16)[2]
			if len(d.Algorithms(op)) < 2 {
				b.Skip("this processor does not multiply bf16")
			}
			compareAlgorithms(b, d, op, pairsCase(number("BATCH", 16), s).flop())
		})
	}
}

// compareAlgorithms runs the algorithms of an op in turn, and reports the best time of the direct one and how many times faster the others are.
func compareAlgorithms(b *testing.B, d *Device, op npu.Op, flop float64) {
	g := newRig(b, d)
	algorithms := d.Algorithms(op)
	var ops []npu.Op
	for _, name := range algorithms {
		ops = append(ops, op.WithAlgorithm(name))
	}
	list := bindAll(g, ops)
	best := make([]time.Duration, len(list))
	for round := range b.N + 1 {
		for j := range list {
			begin := time.Now()
			g.s.Run(list[j : j+1])
			g.s.Sync(context.Background())
			if took := time.Since(begin); round > 0 && (best[j] == 0 || took < best[j]) {
				best[j] = took
			}
		}
	}
	b.ReportMetric(best[0].Seconds()*1e3, "direct-ms")
	b.ReportMetric(flop/best[0].Seconds()/1e9, "direct-GF/s")
	for j, name := range algorithms[1:] {
		b.ReportMetric(best[0].Seconds()/best[j+1].Seconds(), name+"-x")
	}
}
