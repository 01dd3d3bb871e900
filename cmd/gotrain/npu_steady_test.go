//go:build cgo && linux

package main

import (
	"strings"
	"testing"
)

// What a step costs the host when all is prepared: second phases only, no memory, no new stream, and as many copies with ten buckets as with one.
func TestNPUSteadySteps(t *testing.T) {
	m := withNPUs(t, "8.1", "FAKE_CANN_DEVICES=2")
	perStep := func(more ...string) map[string]float64 {
		calls := map[string]float64{}
		for steps, sign := range map[int]float64{4: -1, 8: 1} {
			args, _ := tinyRun(t, "npu", 2, steps, append([]string{"train.batch_per_rank=2", "checkpoint.enabled=false", "checkpoint.every_steps=0"}, more...)...)
			_, stats := m.run(2, args...)
			for _, s := range stats {
				for f, n := range s.Calls {
					calls[f] += sign * float64(n) / 8 // four steps more, of two ranks
				}
			}
		}
		return calls
	}
	many, one := perStep(), perStep("train.bucket_mb=25", "train.first_bucket_mb=25")
	launches := 0.0
	for f, n := range many {
		switch {
		case strings.HasSuffix(f, "GetWorkspaceSize"), strings.HasPrefix(f, "aclCreate"), strings.HasPrefix(f, "aclrtMalloc"),
			strings.HasPrefix(f, "aclrtCreateStream"), f == "aclrtMemsetAsync", f == "aclrtFree", f == "aclrtFreeHost":
			if n != 0 {
				t.Errorf("%s is called %g times in a step", f, n)
			}
		case strings.HasPrefix(f, "aclnn"):
			launches += n
		}
	}
	t.Logf("%g launches in a step, %g reductions", launches, many["HcclAllReduce"])
	if launches < 100 || one["HcclAllReduce"] != 1 || many["HcclAllReduce"] < 5 {
		t.Errorf("%g launches in a step, %g reductions and with one bucket %g", launches, many["HcclAllReduce"], one["HcclAllReduce"])
	}
	if many["aclrtMemcpyAsync"] != one["aclrtMemcpyAsync"] {
		t.Errorf("%g copies in a step, with one bucket %g: the host must not look at each bucket", many["aclrtMemcpyAsync"], one["aclrtMemcpyAsync"])
	}
}
