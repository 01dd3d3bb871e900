package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// A target that lacks kinds is told all of them at once, each with a place in the model.
func TestLackingKindsAreNamed(t *testing.T) {
	_, err := Build(residual(t, 2), fake{lacks: []string{npu.CrossEntropyBwd, npu.MatMul}}, Options{})
	var l *Lacking
	if !errors.As(err, &l) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"cross_entropy_bwd{", ", matmul{", ` of "`, "\nhint: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %s: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), npu.Conv2D) {
		t.Errorf("names what the target has: %v", err)
	}
}
