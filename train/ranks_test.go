package train

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
)

// local is a group of ranks of this process; one rank has none.
func local(t *testing.T, ranks int) []comm.Communicator {
	t.Helper()
	if ranks == 1 {
		return []comm.Communicator{nil}
	}
	comms, err := shm.NewLocal(ranks)
	if err != nil {
		t.Fatal(err)
	}
	return comms
}

// runAll runs a rank for each communicator, which it closes, and returns each one's result. change, which may be nil, sees each trainer before it runs.
// None may hang.
func runAll(t *testing.T, comms []comm.Communicator, opts func(rank int) []Option, change func(tr *Trainer, rank int)) ([]Result, []error) {
	t.Helper()
	res, errs := make([]Result, len(comms)), make([]error, len(comms))
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			tr, err := New(append(opts(r), WithComm(c))...)
			if err == nil {
				if change != nil {
					change(tr, r)
				}
				res[r], err = tr.Run(context.Background())
			}
			errs[r] = err
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("a rank hangs")
	}
	for _, c := range comms {
		if c != nil {
			c.Close()
		}
	}
	return res, errs
}

// together runs several ranks in this process and returns each one's result.
func together(t *testing.T, ranks int, opts func(rank int) []Option, after func(tr *Trainer, rank, step int)) ([]Result, []error) {
	t.Helper()
	return runAll(t, local(t, ranks), opts, func(tr *Trainer, r int) {
		if after != nil {
			tr.afterStep = func(step int) { after(tr, r, step) }
		}
	})
}

// ranksWith runs ranks in this process, and returns losses and evaluations of rank 0; change sees each trainer before it runs.
func ranksWith(t *testing.T, ranks int, opts []Option, change func(tr *Trainer, rank int)) (losses, evals, []error) {
	t.Helper()
	l, e := losses{}, evals{map[int64]float64{}}
	_, errs := runAll(t, local(t, ranks), func(r int) []Option {
		own := append([]Option{}, opts...)
		if r == 0 {
			own = append(own, WithSinks(&l, &e))
		}
		return own
	}, change)
	return l, e, errs
}
