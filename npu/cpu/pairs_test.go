//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// pairsCases have odd numbers of pixels, several strips and blocks, narrow ones at the end, padding, dilation and strides that leave pixels over.
var pairsCases = []convCase{
	{1, 32, 1, 1, 32, 1, 1, 1, [2]int{1, 1}, [2]int{1, 1}, [4]int{}, false, false},
	{3, 64, 5, 5, 96, 1, 1, 1, [2]int{1, 1}, [2]int{1, 1}, [4]int{}, false, false},
	{2, 32, 15, 17, 288, 1, 1, 1, [2]int{1, 1}, [2]int{1, 1}, [4]int{}, false, false},
	{1, 288, 9, 8, 64, 1, 1, 1, [2]int{2, 3}, [2]int{1, 1}, [4]int{}, false, false},
	{2, 64, 7, 9, 32, 3, 3, 1, [2]int{2, 2}, [2]int{1, 1}, [4]int{1, 1, 1, 1}, false, false},
	{1, 32, 8, 11, 64, 2, 3, 1, [2]int{1, 2}, [2]int{2, 1}, [4]int{1, 0, 2, 1}, false, false},
}

// The gradient is that of package ref, to the rounding of sums in float32, and has the same bits with any number of threads.
func TestPairs(t *testing.T) {
	for i, c := range pairsCases {
		op := c.ops(npu.BF16)[2]
		r := rand.New(rand.NewPCG(uint64(i), 5))
		in := [][]byte{tensor(op.In[0], normal(r)), tensor(op.In[1], normal(r))}
		exp := want(t, op, in)
		var first []byte
		for _, threads := range []int{1, 2, 3} {
			d := open(t, npu.Options{Threads: threads, Extra: map[string]string{"onednn": libraries(t)[0], "layout": "nhwc", "bf16": bf16Way(t)}})
			if !slices.Contains(d.Algorithms(op), npu.Pairs) {
				t.Skip("this processor does not multiply bf16")
			}
			k, got := newRig(t, d).run(op.WithAlgorithm(npu.Pairs), in, nil)
			if !strings.HasPrefix(k.Impl(), "c:pairs") {
				t.Fatalf("%s is executed by %s", op, k.Impl())
			}
			terms := float64(op.In[1].Shape.Elems()) / float64(c.o)
			compare(t, fmt.Sprintf("%s with %d threads", op, threads), op.Out[0].With(npu.Plain), got[0], exp[0], 4e-6, math.Sqrt(terms))
			if first == nil {
				first = got[0]
			}
			if !bytes.Equal(first, got[0]) {
				t.Errorf("%s: other bits with %d threads", op, threads)
			}
		}
	}
}

// It is offered where it can win: not beside Winograd's algorithm, not for products that the library has at nine tenths of the peak, and not for other types,
// layouts, channels or ops.
func TestPairsOffered(t *testing.T) {
	lib := libraries(t)[0]
	has := func(layout string, s [5]int, dt npu.DType, i int) bool {
		d := open(t, npu.Options{Threads: 1, Extra: map[string]string{"onednn": lib, "layout": layout, "bf16": bf16Way(t)}})
		return slices.Contains(d.Algorithms(pairsCase(2, s).ops(dt)[i]), npu.Pairs)
	}
	can := open(t, npu.Options{Extra: map[string]string{"onednn": lib}}).hasBF16()
	for _, q := range []struct {
		layout string
		shape  [5]int
		dt     npu.DType
		op     int
		want   bool
	}{
		{"nhwc", [5]int{512, 512, 14, 3, 2}, npu.BF16, 2, can},
		{"nhwc", [5]int{512, 1024, 14, 1, 2}, npu.BF16, 2, can},
		{"nhwc", [5]int{64, 256, 14, 1, 1}, npu.BF16, 2, can},
		{"nhwc", [5]int{256, 1024, 14, 1, 1}, npu.BF16, 2, false},
		{"nhwc", [5]int{64, 64, 14, 3, 1}, npu.BF16, 2, false},
		{"nhwc", [5]int{64, 48, 14, 3, 2}, npu.BF16, 2, false},
		{"nhwc", [5]int{3, 64, 14, 7, 2}, npu.BF16, 2, false},
		{"nhwc", [5]int{64, 64, 14, 3, 2}, npu.F32, 2, false},
		{"nhwc", [5]int{64, 64, 14, 3, 2}, npu.BF16, 0, false},
		{"nhwc", [5]int{64, 64, 14, 3, 2}, npu.BF16, 1, false},
		{string(NChw16c), [5]int{64, 64, 14, 3, 2}, npu.BF16, 2, false},
	} {
		if got := has(q.layout, q.shape, q.dt, q.op); got != q.want {
			t.Errorf("%v: offered: %v", q, got)
		}
	}
}
