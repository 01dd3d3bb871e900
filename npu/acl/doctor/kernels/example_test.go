package kernels_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/acl/doctor/kernels"
	_ "github.com/gotrain/gotrain/npu/ref"
)

func Example() {
	open := func(extra map[string]string) (npu.Device, error) { return npu.Open("ref", npu.Options{Extra: extra}) }
	r, err := kernels.Run(context.Background(), kernels.Options{Open: open, Modes: kernels.Modes("ref"), Kinds: []string{npu.Relu}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range r.Rows {
		fmt.Println(row.Kind, row.Type, row.Passed, row.Failed)
	}
	// Output:
	// relu bf16 6 0
	// relu f32 6 0
}
