package ddp_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
)

// Two ranks fit y = 2x + 1 by gradient descent, each with half of the data, in a custom loop.
func Example() {
	group, err := shm.NewLocal(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, c := range group {
		wg.Go(func() {
			defer c.Close()
			w, b, err := fit(c)
			if c.Rank() == 0 {
				fmt.Printf("y = %.2f x + %.2f, error %v\n", w, b, err)
			}
		})
	}
	wg.Wait()
	// Output: y = 2.00 x + 1.00, error <nil>
}

func fit(c comm.Communicator) (w, b float32, err error) {
	ctx := context.Background()
	eng, err := ddp.New(ctx, ddp.Config{Comm: c, Params: []ddp.Param{{Name: "b", Elems: 1}, {Name: "w", Elems: 1}}})
	if err != nil {
		return 0, 0, err
	}
	defer eng.Close()
	gb, gw := eng.GradF32(0), eng.GradF32(1)
	for step := range int64(200) {
		if err := eng.Begin(step, true); err != nil {
			return 0, 0, err
		}
		if err := eng.Zero(ctx); err != nil {
			return 0, 0, err
		}
		n, loss := 0, 0.0
		for i := c.Rank(); i < 10; i += c.Size() { // this rank's share
			x := float32(i) / 10
			d := w*x + b - (2*x + 1)
			gb[0] += 2 * d
			gw[0] += 2 * d * x
			loss += float64(d * d)
			n++
		}
		eng.Ready(0)
		eng.Ready(1)
		if _, err := eng.Wait(ctx); err != nil {
			return 0, 0, err
		}
		v, err := eng.Agree(ctx, ddp.Vote{Count: float64(n), LossSum: loss})
		if err != nil {
			return 0, 0, err
		}
		lr := 0.5 / float32(v.Count) // divide by the global count, once
		w, b = w-lr*gw[0], b-lr*gb[0]
	}
	return w, b, nil
}
