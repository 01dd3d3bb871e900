package kind_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/kind"
)

// What is known of RMSNorm with a residual.
func Example() {
	k, err := kind.Lookup(npu.RMSNorm)
	if err != nil {
		fmt.Println(err)
		return
	}
	a := npu.Attrs{"eps": 1e-5, "add": true}
	x := npu.D(npu.BF16, 2, 8)
	out, err := k.Infer(a, []npu.Desc{x, npu.D(npu.F32, 8), x})
	fmt.Println(out, err)
	for i, o := range k.Outputs(a) {
		fmt.Println(o.Name, o.Class == kind.Full, k.MayBeNil(a, i))
	}
	fmt.Println("may share memory, output and input:", k.Pairs(a))

	fmt.Println(kind.Check(npu.Op{Kind: npu.RMSNorm, Attrs: a, In: []npu.Desc{x, npu.D(npu.F32, 7), x}, Out: out}))
	// Output:
	// [bf16[2 8] f32[2] bf16[2 8]] <nil>
	// y false false
	// rstd true true
	// sum false false
	// may share memory, output and input: [[0 0] [2 0] [2 2] [0 2]]
	// rmsnorm{add=true eps=1e-05}(bf16[2 8], f32[7], bf16[2 8]) -> bf16[2 8], f32[2], bf16[2 8]: w is f32[7], want f32[8]
}
