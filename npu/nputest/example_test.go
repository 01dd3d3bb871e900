package nputest_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
	_ "github.com/gotrain/gotrain/npu/ref"
)

func Example() {
	dev, err := npu.Open("ref", npu.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	results, err := nputest.Check(context.Background(), dev, nputest.Cases(npu.Softmax, npu.F32)[:2], nputest.Options{})
	if err != nil {
		fmt.Println(err)
	}
	for _, r := range results {
		fmt.Println(r)
	}
	// Output:
	// ok   softmax f32, [2 5 24]: 0.00 of the bound, by go:softmax
	// ok   softmax f32, [2 5 24]: 0.00 of the bound, by go:softmax
}
