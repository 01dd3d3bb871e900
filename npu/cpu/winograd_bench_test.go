//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gotrain/gotrain/npu"
)

// BenchmarkWinograd runs the algorithms of the 3x3 convolutions of ResNet50 in turn and prints the best time of the direct one and how many times faster the
// others are. $BATCH (16), $THREADS (1) and $TYPE (f32) change the op, $GOTRAIN_MAX_ISA the processor.
//
//	go test -run ^$ -bench Winograd -benchtime 10x ./npu/cpu
func BenchmarkWinograd(b *testing.B) {
	number := func(key string, def int) int {
		if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
			return n
		}
		return def
	}
	for stage, hw := range []int{56, 28, 14, 7} {
		ch := 64 << stage
		c := three(number("BATCH", 16), ch, ch, hw, hw, [4]int{1, 1, 1, 1}, false, false)
		for i, kind := range []string{"fwd", "bwd_data", "bwd_weights"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", hw, hw, ch, kind), func(b *testing.B) {
				d := open(b, npu.Options{Threads: number("THREADS", 1), Extra: map[string]string{"onednn": os.Getenv("LIB"), "layout": os.Getenv("LAYOUT")}})
				g := newRig(b, d)
				op := c.ops(map[string]npu.DType{"": npu.F32, "f32": npu.F32, "bf16": npu.BF16}[os.Getenv("TYPE")])[i]
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
				b.ReportMetric(c.flop()/best[0].Seconds()/1e9, "direct-GF/s")
				for j, name := range algorithms[1:] {
					b.ReportMetric(best[0].Seconds()/best[j+1].Seconds(), name+"-x")
				}
			})
		}
	}
}
