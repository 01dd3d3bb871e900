package comm

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestInUse(t *testing.T) {
	cause := fmt.Errorf("device 3: %w", context.DeadlineExceeded)
	err := fmt.Errorf("step 4: %w", InUse(cause))
	if !errors.Is(err, ErrInUse) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is marked %v, and keeps its cause %v", err, errors.Is(err, ErrInUse), errors.Is(err, context.DeadlineExceeded))
	}
	if err.Error() != "step 4: device 3: context deadline exceeded" {
		t.Errorf("%q", err)
	}
	if errors.Is(cause, ErrInUse) {
		t.Error("an error is in use without the mark")
	}
}
