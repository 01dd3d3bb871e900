package compress_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/compress"
	"github.com/gotrain/gotrain/npu"
)

// What a codec takes can be told from the plan of the buckets alone.
func ExampleCosts() {
	p, err := bucket.New([]bucket.Param{
		{Name: "fc.weight", Elems: 1 << 20, DType: npu.F32}, {Name: "fc.bias", Elems: 1024, DType: npu.F32},
	}, bucket.Config{World: 8, FirstBytes: 8 << 20, CapBytes: 8 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"none", "bf16", "int8"} {
		c := compress.Costs(name, compress.Options{Raw: func(param string) bool { return param == "fc.bias" }}, p, 8)
		fmt.Printf("%-4s %.1f KiB travel as %.1f KiB\n", name, float64(c.Raw)/1024, float64(c.Sent)/1024)
	}
	// Output:
	// none 4100.0 KiB travel as 4100.0 KiB
	// bf16 4100.0 KiB travel as 2050.0 KiB
	// int8 4100.0 KiB travel as 1044.5 KiB
}
