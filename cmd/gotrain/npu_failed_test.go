//go:build cgo && linux

package main

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// A device without memory: the message says what did not fit, how much there is, and what to do, wherever it happens.
func TestNPUOutOfMemory(t *testing.T) {
	m := withNPUs(t, "9.0", "FAKE_CANN_DEVICES=2")
	for _, mib := range []string{"33", "36", "420"} { // for the model, for its gradients, for HCCL's buffers
		args, _ := tinyRun(t, "npu", 2, 2, "train.batch_per_rank=32", "data.image_size=64")
		raw, err := m.with("FAKE_CANN_MEMORY_MIB=" + mib).program(args...).CombinedOutput()
		out := string(raw)
		m.sound()
		if exitCodeOf(err) != launch.ExitUnavailable {
			t.Errorf("%s MiB: exit code %d", mib, exitCodeOf(err))
		}
		for _, want := range []string{"memory", "failed first: ", "\nhint: "} {
			if !strings.Contains(out, want) {
				t.Errorf("%s MiB: no %q\n%s", mib, want, tail(out))
			}
		}
	}
}
