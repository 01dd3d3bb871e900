package launch

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), ExitTraining},
		{fmt.Errorf("a: %w", WithCode(ExitStorage, errors.New("disk full"))), ExitStorage},
		{fmt.Errorf("a: %w", context.DeadlineExceeded), ExitTimeout},
		{errors.Join(errors.New("x"), WithCode(ExitRecipe, errors.New("y"))), ExitRecipe},
		{WithCode(ExitUsage, nil), 0},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// The codes are a promise to scripts and schedulers.
func TestCodesAreFrozen(t *testing.T) {
	got := ""
	for _, c := range Codes() {
		got += fmt.Sprintf("%d %s, ", c.Code, c.Name)
	}
	const want = "0 ok, 1 error, 64 usage, 66 no-input, 69 unavailable, 70 internal, 73 in-use, 74 storage, 75 stopped, " +
		"76 numerics, 78 recipe, 79 not-resumable, 124 timeout, "
	if got != want {
		t.Errorf("exit codes changed:\n got %s\nwant %s", got, want)
	}
}
