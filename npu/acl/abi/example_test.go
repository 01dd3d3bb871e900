package abi_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu/acl/abi"
)

func Example() {
	o, _ := abi.Find("Relu")
	for _, a := range o.Args {
		fmt.Println(abi.Codes[a.Code], a.Name)
	}
	// Output:
	// const aclTensor* self
	// const aclTensor* out
}
