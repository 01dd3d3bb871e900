package nputest_test

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/npu/nputest"
)

// A gradient of another function is found; a case in float32, or without gradients, is refused. (Package ref's tests check its gradients.)
func TestCheckGradient(t *testing.T) {
	c := nputest.Cases(npu.SoftmaxBwd, npu.F64)[0]
	if err := nputest.CheckGradient(c); err != nil {
		t.Error(err)
	}
	c.Calls = append([]nputest.Call{}, c.Calls...)
	c.Calls[1].Kind = npu.LogSoftmaxBwd
	for want, c := range map[string]nputest.Case{
		"central difference": c,
		"need float64":       nputest.Cases(npu.SoftmaxBwd, npu.F32)[0],
		"no gradients":       nputest.Cases(npu.Softmax, npu.F64)[0],
	} {
		if err := nputest.CheckGradient(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
