package launch

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/internal/transcript"
)

// underShell runs ranks that are shells, which start the program proper and do not pass signals on, and asks them to stop.
func underShell(t *testing.T, role string, grace time.Duration) (out string, err error) {
	t.Helper()
	var o transcript.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- Supervise(ctx, Job{
			Argv: []string{"sh", "-c", `"$0"; exit $?`, os.Args[0]}, Ranks: 2, Stdout: &o, Stderr: &o, Grace: grace,
			Env: append(os.Environ(), "GOTRAIN_TEST_ROLE="+role),
		})
	}()
	o.WaitFor(t, "ready", 2)
	cancel()
	select {
	case err = <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("the job does not end:\n%s", o.String())
	}
	return o.String(), err
}

// A stop request reaches the program behind a shell, which the same signal kills; the job waits until the program has saved its work, and ends with its code.
func TestStopRequestReachesTheProgramBehindAShell(t *testing.T) {
	for role, want := range map[string]int{"shelled:75": ExitStopped, "shelled:79": ExitNotResumable} {
		out, err := underShell(t, role, time.Minute)
		var stop *StoppedError
		if !errors.As(err, &stop) || stop.Code != want || stop.Signal != syscall.SIGTERM || strings.Count(out, "saved") != 2 {
			t.Errorf("%s: %v\n%s", role, err, out)
		}
	}
}

// The grace period ends the wait for a program that ignores the request.
func TestDeafProgramBehindAShellIsKilled(t *testing.T) {
	out, err := underShell(t, "shelled:deaf", 100*time.Millisecond)
	if ExitCode(err) != 128+int(syscall.SIGTERM) || !strings.Contains(out, "processes that the ranks started are still running") ||
		!strings.Contains(out, "killing the group") {
		t.Errorf("%v\n%s", err, out)
	}
}
