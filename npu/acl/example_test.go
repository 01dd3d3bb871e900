package acl_test

import (
	"errors"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/acl"
)

// A machine without NPUs is not an error for a program that takes the best device there is.
func Example() {
	_, err := npu.Open("npu", npu.Options{Extra: map[string]string{"color": "red"}})
	var e *npu.OpenError
	fmt.Println(errors.As(err, &e), e.Family, e.ExitCode())
	// Output: true npu 69
}
