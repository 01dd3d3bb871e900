//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// BenchmarkWinograd runs the algorithms of the 3x3 convolutions of ResNet50 in turn and prints the best time of the direct one and how many times faster the
// others are. $BATCH (16), $THREADS (1) and $TYPE (f32) change the op, $GOTRAIN_MAX_ISA the processor.
//
//	go test -run ^$ -bench Winograd -benchtime 10x ./npu/cpu
func BenchmarkWinograd(b *testing.B) {
	for stage, hw := range []int{56, 28, 14, 7} {
		ch := 64 << stage
		c := three(number("BATCH", 16), ch, ch, hw, hw, [4]int{1, 1, 1, 1}, false, false)
		for i, kind := range []string{"fwd", "bwd_data", "bwd_weights"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", hw, hw, ch, kind), func(b *testing.B) {
				d := open(b, npu.Options{Threads: number("THREADS", 1), Extra: map[string]string{"onednn": os.Getenv("LIB"), "layout": os.Getenv("LAYOUT")}})
				op := c.ops(map[string]npu.DType{"": npu.F32, "f32": npu.F32, "bf16": npu.BF16}[os.Getenv("TYPE")])[i]
				compareAlgorithms(b, d, op, c.flop())
			})
		}
	}
}

// number reads a number from the environment.
func number(key string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
		return n
	}
	return def
}
