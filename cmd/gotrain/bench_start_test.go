package main

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/tcp"
	"github.com/gotrain/gotrain/ddp/launch"
)

// Ranks of one machine that measure TCP agree to begin by shared memory; those of which one seems to be elsewhere do not, and nobody waits for it.
func TestBenchStarter(t *testing.T) {
	for name, c := range map[string]struct {
		job  func(rank int) string
		want bool
	}{
		"one machine": {func(int) string { return fmt.Sprintf("bench-start-%d", os.Getpid()) }, true},
		"another":     {func(r int) string { return fmt.Sprintf("bench-start-%d-%d", os.Getpid(), r) }, false},
	} {
		g, err := tcp.NewLocal(2, nil)
		if err != nil {
			t.Skip(err)
		}
		var wg sync.WaitGroup
		for r, of := range g {
			wg.Go(func() {
				defer of.Close()
				start, err := starter(t.Context(), launch.Identity{Rank: r, World: 2, JobID: c.job(r)}, of)
				if err != nil || (start != nil) != c.want {
					t.Errorf("%s, rank %d: %v, %v", name, r, start, err)
				}
				if start == nil {
					return
				}
				defer start.Close()
				if start.Rank() != r || start.Size() != 2 || start.Transport() != "shm" {
					t.Errorf("%s: rank %d of %d by %s", name, start.Rank(), start.Size(), start.Transport())
				}
				if err := comm.Wait(t.Context())(start.Barrier(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if start, err := starter(t.Context(), launch.Identity{World: 1}, self.New()); start != nil || err != nil {
		t.Errorf("alone: %v, %v", start, err)
	}
}
