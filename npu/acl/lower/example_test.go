package lower_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/lower"
)

func ExampleLower() {
	op := npu.Op{Kind: npu.Relu, In: []npu.Desc{npu.D(npu.BF16, 4, 8)}, Out: []npu.Desc{npu.D(npu.BF16, 4, 8)}}
	p, err := lower.Lower(op, lower.Caps{Family: lower.A2, Version: lower.Version{Major: 9}})
	if err != nil {
		panic(err)
	}
	fmt.Print(p)
	// Output: Relu(in0 bf16[4 8], out0 bf16[4 8])
}
