package solib_test

import (
	"fmt"

	"github.com/gotrain/gotrain/npu/solib"
)

func Example() {
	fmt.Println(solib.Check("libdnnl.so.3")) // left to the dynamic linker
	// Output: libdnnl.so.3 <nil>
}
