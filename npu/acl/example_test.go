package acl_test

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/acl"
)

// Opening says why there is no device, with the exit code for it: here the option is wrong, whatever the machine has.
func Example() {
	_, err := npu.Open("npu", npu.Options{Extra: map[string]string{"color": "red"}})
	var e *npu.OpenError
	fmt.Println(errors.As(err, &e), e.Family, e.ExitCode())
	// Output: true npu 78
}
