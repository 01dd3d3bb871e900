package npu

import (
	"errors"
	"strings"
	"testing"
)

func TestComputes(t *testing.T) {
	i := Info{Name: "abacus", Detail: "ten beads", Compute: []DType{BF16, F32}}
	if err := i.Computes(BF16); err != nil {
		t.Error(err)
	}
	err := i.Computes(F16)
	var open *OpenError
	want := "device abacus (ten beads) does not compute in f16; it has bf16, f32\nhint:"
	if !errors.As(err, &open) || open.ExitCode() != 69 || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
