package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// runs starts the ranks, and starts all of them again after a failure, as often as the job allows. begun is false if they were never started.
func runs(ctx context.Context, j Job, c *console, sigs <-chan os.Signal) (begun bool, err error) {
	id := j.JobID
	for used, n := 0, 0; ; n++ {
		s := &supervisor{Job: j, restart: n, console: c, begin: time.Now()}
		if n > 0 {
			s.JobID = safeName(fmt.Sprintf("%s-%d", id, n)) // leftovers of the start before must not be met
		}
		var started bool
		started, err = s.run(ctx, sigs)
		begun = begun || started
		if time.Since(s.begin) >= j.refill {
			used = 0
		}
		if !again(err) || j.Restarts == 0 || ctx.Err() != nil {
			return begun, err
		}
		if used >= j.Restarts {
			c.say("the job failed again after %d restarts", used)
			return begun, err
		}
		used++
		wait := j.backOff(used)
		c.say("%s", strings.TrimPrefix(err.Error(), "launch: "))
		c.say("restart %d of %d: all ranks start again in %v", used, j.Restarts, wait)
		if sig := pause(ctx, sigs, wait); sig != 0 {
			return begun, &StoppedError{Signal: sig, Code: 128 + int(sig)}
		}
	}
}

// again reports whether a new start may help.
func again(err error) bool {
	if err == nil {
		return false
	}
	if s := (*StoppedError)(nil); errors.As(err, &s) {
		return false
	}
	switch ExitCode(err) {
	case ExitUsage, ExitNoInput, ExitNumerics, ExitRecipe:
		return false
	}
	return true
}

// backOff is the time before restart n: 1, 2, 4 … 60 s.
func backOff(n int) time.Duration {
	if n > 6 {
		return time.Minute
	}
	return min(time.Minute, time.Second<<(n-1))
}

// pause waits, and returns the signal that ended the wait.
func pause(ctx context.Context, sigs <-chan os.Signal, d time.Duration) syscall.Signal {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return 0
		case <-ctx.Done():
			return syscall.SIGTERM
		case sig := <-sigs:
			switch sig := sig.(syscall.Signal); sig {
			case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
				return sig
			case syscall.SIGTSTP:
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		}
	}
}
