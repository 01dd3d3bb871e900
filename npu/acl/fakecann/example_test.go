package fakecann_test

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/npu/acl/fakecann"
)

func ExampleEnv() {
	fmt.Println(strings.Join(fakecann.Env("/tmp/cann", "FAKE_CANN_DEVICES=2"), "\n"))
	// Output:
	// ASCEND_HOME_PATH=/tmp/cann
	// ASCEND_TOOLKIT_HOME=/tmp/cann
	// ASCEND_OPP_PATH=/tmp/cann/opp
	// LD_LIBRARY_PATH=/tmp/cann/lib64
	// FAKE_CANN_DEVICES=2
}
