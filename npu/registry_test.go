package npu_test

import (
	"errors"
	"testing"

	"github.com/gotrain/gotrain/npu"
)

// brokenDevice is a device whose opener returns a nil pointer of its type beside the error.
type brokenDevice struct{ npu.Device }

func TestOpenFails(t *testing.T) {
	reason := errors.New("no library")
	open := func() (*brokenDevice, error) { return nil, reason }
	npu.Register("broken", 0, func(npu.Options) (npu.Device, error) { return open() })
	for _, family := range []string{"broken", "absent"} {
		d, err := npu.Open(family, npu.Options{})
		var e *npu.OpenError
		if d != nil || !errors.As(err, &e) || e.Family != family || e.ExitCode() != 69 {
			t.Errorf("%s: %v, %v", family, d, err)
		}
		if family == "broken" && !errors.Is(err, reason) {
			t.Error(err)
		}
	}
}
