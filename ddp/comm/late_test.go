package comm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/launch"
)

// A time-out names whom the transport knows, and says so where it knows nobody; the rank is a victim in any case.
func TestTimeoutError(t *testing.T) {
	for _, c := range []struct {
		err    comm.TimeoutError
		text   string
		blames []int
		victim bool // of an unknown rank
	}{
		{comm.TimeoutError{Missing: []int{1, 2}}, "timeout after 3s waiting for ranks [1 2]\nhint: look for the first error of those ranks;", []int{1, 2}, false},
		{comm.TimeoutError{Missing: []int{1}, Work: "rank 1 was at long work: x"}, "waiting for ranks [1] (rank 1 was at long work: x)\n", []int{1}, false},
		{comm.TimeoutError{}, "waiting for another rank; this transport cannot tell which\nhint: look for the first error of any rank;", nil, true},
		{comm.TimeoutError{Stalled: []int{3}, Silent: 2 * time.Second}, "waiting for ranks [3], which began and then were silent for 2s\n", []int{3}, false},
		{comm.TimeoutError{Missing: []int{1}, Stalled: []int{3}, Silent: time.Second},
			"waiting for ranks [1] and ranks [3], which began and then were silent for 1s\n", []int{1, 3}, false},
	} {
		c.err.Call, c.err.After = "allreduce #4", 3*time.Second
		err := fmt.Errorf("step 7: %w", &c.err)
		if !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q\nwant %q", err, c.text)
		}
		if got := launch.Blamed(err); !slices.Equal(got, c.blames) || launch.Victim(err) != c.victim || launch.ExitCode(err) != launch.ExitTimeout {
			t.Errorf("%v: blames %v, victim %v, exit code %d", err, got, launch.Victim(err), launch.ExitCode(err))
		}
	}
}
