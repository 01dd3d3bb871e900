//go:build !cgo

package cpu

import (
	"strings"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

func TestNoCgo(t *testing.T) {
	_, err := npu.Open("cpu", npu.Options{})
	if err == nil || !strings.Contains(err.Error(), `device family "cpu"`) || !strings.Contains(err.Error(), "cgo") {
		t.Errorf("open without cgo: %v", err)
	}
}
