package headers_test

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/abi"
	"github.com/gotrain/gotrain/npu/acl/abi/headers"
)

func Example() {
	relu, _ := abi.Find("Relu")
	text, err := headers.Source([]string{"aclnnop/aclnn_relu.h"}, headers.Phases([]abi.Op{*relu}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(text[strings.Index(text, "#include \"aclnnop"):])
	// Output:
	// #include "aclnnop/aclnn_relu.h"
	// GT_CHECK(aclnnReluGetWorkspaceSize, 0x20000u + 4, 1, 1, 1, 1)
	// GT_CHECK(aclnnRelu, 0x20000u + 4, 1, 0x40000u + 8, 1, 1)
}
