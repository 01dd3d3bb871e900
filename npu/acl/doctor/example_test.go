package doctor_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/gotrain/gotrain/npu/acl/doctor"
)

func Example() {
	machine := doctor.Recorded{Root: fstest.MapFS{
		"dev/davinci0":  {},
		"cmd/env.txt":   {Data: []byte("ASCEND_RT_VISIBLE_DEVICES=1,0\n")},
		"etc/hccn.conf": {Data: []byte("address_0=198.51.100.10\n")},
	}}
	r := doctor.Check(context.Background(), machine, doctor.Options{})
	for _, f := range r.Findings {
		if f.Where == "environment" && f.Severity == doctor.Error {
			fmt.Println(f.What)
			fmt.Println(f.Remedy)
		}
	}
	// Output:
	// ASCEND_RT_VISIBLE_DEVICES=1,0: the numbers must ascend, else CANN sees no device
	// sort the list
}
