package shm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
)

// branches makes a second group of a local one.
func branches(t *testing.T, n int) (trunk, branch []comm.Communicator) {
	t.Helper()
	trunk, err := NewLocal(n)
	if err != nil {
		t.Fatal(err)
	}
	branch = make([]comm.Communicator, n)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for r, c := range trunk {
		wg.Go(func() {
			b, err := comm.Branch(ctx, c)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			branch[r] = b
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return trunk, branch
}

func closeAll(groups ...[]comm.Communicator) {
	for _, g := range groups {
		for _, c := range g {
			c.Close()
		}
	}
}

// A branch is a whole group.
func TestBranchSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	commtest.Run(t, commtest.Transport{
		New: func(t *testing.T, n int) []comm.Communicator {
			t.Helper()
			trunk, branch := branches(t, n)
			t.Cleanup(func() { closeAll(branch, trunk) })
			return branch
		},
		Kill:  func(c comm.Communicator) { c.(*Comm).leave(absent) },
		Ranks: []int{1, 3},
	})
}

// Each group has an order of its own.
func TestBranchIsApart(t *testing.T) {
	trunk, branch := branches(t, 2)
	defer closeAll(branch, trunk)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	each(t, trunk, func(c comm.Communicator) error {
		calls := []func() (comm.Handle, error){
			func() (comm.Handle, error) { return c.AllReduce(ctx, comm.HostOf(make([]float32, 50000)), comm.Sum) },
			func() (comm.Handle, error) {
				return branch[c.Rank()].AllReduce(ctx, comm.HostOf(make([]int64, 7)), comm.Max)
			},
		}
		if c.Rank() == 1 {
			slices.Reverse(calls)
		}
		h0, err0 := calls[0]()
		h1, err1 := calls[1]()
		if err := errors.Join(err0, err1); err != nil {
			return err
		}
		return errors.Join(h0.Wait(ctx), h1.Wait(ctx))
	})
	branch[0].Abort(errors.New("only the branch"))
	if err := comm.Wait(ctx)(branch[1].Barrier(ctx)); err == nil || !strings.Contains(err.Error(), "only the branch") {
		t.Errorf("branch: %v", err)
	}
	each(t, trunk, func(c comm.Communicator) error { return comm.Wait(ctx)(c.Barrier(ctx)) })
}

// Long work that is reported to the trunk keeps waits in the branch alive, and its name is in their errors.
func TestBranchAndLongWork(t *testing.T) {
	trunk, branch := branches(t, 2)
	defer closeAll(branch, trunk)
	const short = 600 * time.Millisecond
	each(t, trunk, func(c comm.Communicator) error {
		ctx, cancel := comm.Patient(context.Background(), short, time.Minute)
		defer cancel()
		if c.Rank() == 0 {
			end := comm.Steady(c, "counting", nil)
			time.Sleep(3 * short)
			end()
		}
		return comm.Wait(ctx)(branch[c.Rank()].Barrier(ctx))
	})
	branch[0].Work("sleeping").Beat()
	ctx, cancel := comm.Patient(context.Background(), short, time.Minute)
	defer cancel()
	var late *comm.TimeoutError
	if err := comm.Wait(ctx)(branch[1].Barrier(ctx)); !errors.As(err, &late) || !strings.Contains(late.Work, "sleeping") {
		t.Errorf("error %v, want a timeout with the work", err)
	}
}
