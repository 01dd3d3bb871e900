package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/gotrain/gotrain/ddp/launch"
)

// untilStopped runs what can be stopped by signals. do tells, by calling stopper, how it is stopped in good order; until then a signal cancels
// its context. A second SIGINT ends the process at once.
func untilStopped(ctx context.Context, do func(ctx context.Context, stopper func(func())) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	stop, asked := cancel, false

	sigs := make(chan os.Signal, 4)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup
			signal.Notify(sigs, s)
		}
	}
	defer signal.Stop(sigs)
	done := make(chan struct{})
	defer close(done)
	go func() {
		ints := 0
		for {
			select {
			case <-done:
				return
			case s := <-sigs:
				if s == syscall.SIGINT {
					if ints++; ints > 1 {
						os.Exit(128 + int(syscall.SIGINT))
					}
				}
				mu.Lock()
				asked = true
				stop()
				mu.Unlock()
			}
		}
	}()

	err := do(ctx, func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		stop = f
		if asked {
			f()
		}
	})
	mu.Lock()
	defer mu.Unlock()
	if asked && err != nil && ctx.Err() != nil {
		// Stopped before there was anything to save.
		return launch.WithCode(launch.ExitStopped, err)
	}
	return err
}
