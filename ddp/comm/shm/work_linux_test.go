package shm

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
)

// busy has rank 0 do endless long work, while rank 1 waits for it with a patience of three seconds: enough for the other's beats, five a second, on a
// machine that is starved.
func busy(ctx context.Context, c comm.Communicator) error {
	if c.Rank() == 0 {
		defer comm.Steady(c, "counting leaves", nil)()
		fmt.Println("AT WORK")
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := comm.Patient(ctx, 3*time.Second, time.Minute)
	defer cancel()
	fmt.Println("WAITING")
	return comm.Wait(ctx)(c.Barrier(ctx))
}

// TestFrozenAtWork stops a process that does long work. The rank that waits has rightly waited longer than its patience by then; now it must
// give up, and name the frozen rank and its work.
func TestFrozenAtWork(t *testing.T) {
	job := jobID(t)
	zero, one := start(t, job, "busy", 0, 2), start(t, job, "busy", 1, 2)
	zero.expect(t, "AT WORK")
	one.expect(t, "WAITING")
	select {
	case err := <-one.done:
		t.Fatalf("rank 1 has no patience with a rank that works: %v: %s", err, one.out)
	case <-time.After(4 * time.Second):
	}
	if err := zero.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := one.wait(t, 40*time.Second); err == nil || !strings.Contains(one.out.String(), "ranks [0] (rank 0 was at long work: counting leaves") {
		t.Errorf("rank 1: %v: %s", err, one.out)
	}
	nothingLeft(t, job)
}
