package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

// stoppable is work that can end in an orderly way.
type stoppable interface {
	Stop()    // after the step under way
	Abandon() // without waiting for it
}

// oneRequest is the time within which several signals count as one: Ctrl-C reaches a whole process group, and launchers forward it as well. It is a little
// less than the second that the manual names, because a supervisor has counted already and its signals may arrive closer together.
const oneRequest = 800 * time.Millisecond

// requests counts the signals that ask a process to end. The zero value is ready to use.
type requests struct {
	n    int
	last time.Time
}

// take returns the number of the request that a signal makes, from 1; 0 if it belongs to the previous request, or can only make a first one.
func (r *requests) take(s os.Signal, now time.Time) int {
	if r.n > 0 && (now.Sub(r.last) < oneRequest || s != syscall.SIGINT && s != syscall.SIGTERM) {
		return 0
	}
	r.last = now
	r.n++
	return r.n
}

// untilStopped runs do, and stops it on signals. do passes what to stop to running once it exists; until then a signal cancels the context of do, and resumes
// says whether the same command then continues from a checkpoint. A second request abandons the work under way; a third ends the process as if the signal
// had no handler. The end of the launcher that started this rank counts as a request.
func untilStopped(ctx context.Context, id launch.Identity, resumes func() bool, do func(ctx context.Context, running func(stoppable)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var what stoppable = starting(cancel)
	asked := 0

	sigs := make(chan os.Signal, 4)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup
			signal.Notify(sigs, s)
		}
	}
	defer signal.Stop(sigs)
	done := make(chan struct{})
	defer close(done)
	orphaned := launch.Orphaned(ctx, id)
	go func() {
		var count requests
		for {
			var s os.Signal
			select {
			case <-done:
				return
			case <-orphaned:
				orphaned = nil
				if count.n > 0 { // the launcher asked, and did not wait
					continue
				}
				slog.Warn("the process that started this rank is gone; stopping as if it had sent SIGTERM", "launcher", id.Source)
				s = syscall.SIGTERM
			case s = <-sigs:
			}
			n := count.take(s, time.Now())
			if n > 2 {
				signal.Reset(s)
				_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
				continue
			}
			mu.Lock()
			asked = max(asked, n)
			tell(what, n)
			mu.Unlock()
		}
	}()

	err := do(ctx, func(s stoppable) {
		mu.Lock()
		defer mu.Unlock()
		what = s
		tell(what, asked)
	})
	mu.Lock()
	defer mu.Unlock()
	if asked > 0 && err != nil && ctx.Err() != nil {
		code, hint := launch.ExitStopped, "run the same command again to resume"
		if !resumes() {
			code, hint = launch.ExitNotResumable, "the same command starts over"
		}
		return launch.WithCode(code, fmt.Errorf("stopped on request during the start, before there was anything to save (%w)\nhint: %s", err, hint))
	}
	return err
}

func tell(what stoppable, request int) {
	switch request {
	case 1:
		what.Stop()
	case 2:
		what.Abandon()
	}
}

// starting is the stoppable of a run that is still starting.
type starting func()

func (s starting) Stop()    { s() }
func (s starting) Abandon() { s() }
