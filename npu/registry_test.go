package npu_test

import (
	"errors"
	"fmt"
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

// A wrong option is a mistake of whoever wrote it, and has another exit code than a device that is missing.
func TestOpenWithWrongOption(t *testing.T) {
	npu.Register("picky", 0, func(npu.Options) (npu.Device, error) {
		return nil, fmt.Errorf("picky: open: %w", &npu.OptionError{Err: errors.New("unknown option")})
	})
	_, err := npu.Open("picky", npu.Options{})
	var e *npu.OpenError
	if !errors.As(err, &e) || e.ExitCode() != 78 || err.Error() != "picky: open: unknown option" {
		t.Errorf("%v", err)
	}
}
