package op_test

import (
	"fmt"

	"github.com/gotrain/gotrain/graph/op"
	"github.com/gotrain/gotrain/npu"
)

// What a convolution gives and costs.
func Example() {
	k, err := op.Lookup(npu.Conv2D)
	if err != nil {
		fmt.Println(err)
		return
	}
	o := npu.Op{
		Kind:  npu.Conv2D,
		Attrs: npu.Attrs{"stride": []int{2, 2}, "pad": []int{3, 3, 3, 3}},
		In:    []npu.Desc{npu.D(npu.F32, 16, 3, 224, 224), npu.D(npu.F32, 64, 3, 7, 7)},
	}
	if o.Out, err = k.Infer(o.Attrs, o.In); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Out[0], k.FLOPs(o)/1e6, "MFLOP,", op.Bytes(o)/1e6, "MB")

	_, err = k.Infer(npu.Attrs{"strides": []int{2, 2}}, o.In)
	fmt.Println(err)
	// Output:
	// f32[16 64 112 112] 3776 MFLOP, 61 MB
	// has no attribute "strides" (knows algorithm, bias, dilation, groups, pad, relu, stride)
}
