//go:build cgo && linux && (amd64 || arm64)

package cpu_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
)

func Example() {
	// Without the library every kind still works, so that this example runs anywhere.
	dev, err := npu.Open("cpu", npu.Options{Threads: 1, Extra: map[string]string{"onednn": "off"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	info := dev.Info()
	fmt.Println(info.Name, info.Threads, dev.Has(npu.Conv2D, nil), dev.Has("no such kind", nil))
	// Output: cpu 1 true false
}
