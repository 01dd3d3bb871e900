package comm

import (
	"context"
	"fmt"
	"time"
)

// TimeoutError reports a collective that did not end in time, and which ranks are to blame.
//
// A transport that hears from every rank names them: in Missing those of which it heard nothing of this call, in Stalled those that began and then fell
// silent. One that cannot tell leaves both empty; it never guesses. The error then says that it does not know, and the rank still counts as the victim of
// another one, whose own error comes first.
type TimeoutError struct {
	Call    string
	After   time.Duration
	Missing []int         // did not come
	Stalled []int         // came, and sent nothing for Silent
	Silent  time.Duration // of the stalled ranks
	Work    string        // the long work at which a missing rank stopped making progress, or was when the long deadline passed; "" if none
}

func (e *TimeoutError) Error() string {
	work, hint := "", "look for the first error of those ranks; allow a slow rank a longer deadline"
	if e.Work != "" {
		work = " (" + e.Work + ")"
	}
	whom := fmt.Sprintf("waiting for ranks %v", e.Missing)
	if len(e.Missing) == 0 {
		whom = "waiting for another rank; this transport cannot tell which"
		hint = "look for the first error of any rank; allow a slow rank a longer deadline"
	}
	if len(e.Stalled) > 0 {
		stalled := fmt.Sprintf("ranks %v, which began and then were silent for %v", e.Stalled, e.Silent.Round(time.Millisecond))
		if len(e.Missing) == 0 {
			whom = "waiting for " + stalled
		} else {
			whom += " and " + stalled
		}
		hint = "look for the first error of those ranks, and at the network between them; allow a slow rank a longer deadline"
	}
	return fmt.Sprintf("comm: %s: timeout after %v %s%s\nhint: %s", e.Call, e.After.Round(time.Millisecond), whom, work, hint)
}

// Unwrap makes errors.Is(err, context.DeadlineExceeded) true.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Blames returns the missing and the stalled ranks, which caused the failure; nil if the transport does not know them.
func (e *TimeoutError) Blames() []int {
	if len(e.Stalled) == 0 {
		return e.Missing
	}
	return append(append([]int(nil), e.Missing...), e.Stalled...)
}

// Victim is true: another rank caused the failure, known or not.
func (e *TimeoutError) Victim() bool { return true }
