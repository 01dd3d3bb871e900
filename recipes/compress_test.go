package recipes

import (
	"strings"
	"testing"
)

func TestCompressRules(t *testing.T) {
	for sets, want := range map[string]string{
		"comm.compress=int8 comm.compress_block=300": `comm.compress_block: must be a power of two, got 300`,
		"comm.compress=int8 comm.compress_block=16":  `comm.compress_block: must be at least 32`,
		"comm.compress=fp8":                          `comm.compress: unknown value "fp8"`,
		"comm.compress=int8 train.device=npu":        `comm.compress: int8 encodes in the memory of the host, and gradients of an NPU are in its own (use f16 or bf16`,
	} {
		if _, err := Open("quickstart", strings.Fields(sets)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", sets, err, want)
		}
	}
	if _, err := Open("quickstart", "comm.compress=f16", "train.device=npu"); err != nil {
		t.Error(err)
	}
}
