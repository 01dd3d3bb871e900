package roofline_test

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/graph/roofline"
	"github.com/gotrain/gotrain/npu"
)

// A product of 1024×1024 matrices on a processor of 100 GFLOP/s and 10 GB/s.
func Example() {
	square := npu.D(npu.F32, 1024, 1024)
	product := npu.Op{Kind: npu.MatMul, In: []npu.Desc{square, square}, Out: []npu.Desc{square}}
	limits := npu.Limits{Threads: 1, Peaks: []npu.Peak{{Type: "f32", FLOP: 100e9}}, Rates: []npu.Rates{{Bytes: 1 << 20, Read: 10e9, Copy: 10e9, Add: 10e9}}}
	r := roofline.New([]roofline.Sample{{Op: product, Impl: "dnnl:jit", Took: 25 * time.Millisecond}}, limits)
	k := r.Kinds[0]
	fmt.Printf("%s: %.0f %% of the bound, which is %s\n", k.Kind, 100*k.Ratio(), k.By)
	// Output: matmul dX: 86 % of the bound, which is compute
}
