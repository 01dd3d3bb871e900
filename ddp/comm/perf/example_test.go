package perf_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/npu"
)

func Example() {
	sizes, err := perf.Sizes(4<<10, 64<<10, perf.Growth{Factor: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := perf.Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: sizes, Repeat: 3}
	sum, err := perf.Run(context.Background(), self.New(), cfg, func(r perf.Row) {
		fmt.Println(perf.FormatBytes(r.Bytes), r.Elems, r.Wrong)
	})
	fmt.Println(len(sum.Rows), sum.Wrong, err)
	// Output:
	// 4 KiB 1024 0
	// 16 KiB 4096 0
	// 64 KiB 16384 0
	// 3 0 <nil>
}
