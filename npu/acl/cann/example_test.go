package cann_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu/acl/cann"
)

// An error of CANN says which call failed, what the code means, what CANN wrote, and what can be done.
func Example() {
	err := &cann.Error{Call: "aclnnAddGetWorkspaceSize", Op: "Add", Code: 561003, Detail: "EZ1001: no binary for Add"}
	fmt.Println(err)
	// Output:
	// aclnnAddGetWorkspaceSize: error 561003 (the operator has no kernel for this device): EZ1001: no binary for Add
	// hint: install the package of operator kernels (opp_kernel) for this SoC, of the same version as the toolkit, and source set_env.sh
}
