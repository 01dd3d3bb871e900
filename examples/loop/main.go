// Command loop uses the DDP engine alone, without graph, trainer or device: two ranks of one process fit a line by gradient descent in a custom loop,
// each on half of the points, and end with the same weights as one rank that sees all of them. Run it with: go run ./examples/loop
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/self"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"golang.org/x/sync/errgroup"
)

// Point i lies on y = 3x - 2.
func point(i int) (x, y float32) {
	x = float32(i%17)/8 - 1
	return x, 3*x - 2
}

// fit runs one rank: it owns every W-th point.
func fit(ctx context.Context, c comm.Communicator, points, steps int) (w [2]float32, loss float64, err error) {
	eng, err := ddp.New(ctx, ddp.Config{Comm: c, Params: []ddp.Param{{Name: "slope", Elems: 1}, {Name: "offset", Elems: 1}}})
	if err != nil {
		return w, 0, err
	}
	defer eng.Close()
	for step := range steps {
		if err := eng.Begin(int64(step), true); err != nil {
			return w, 0, err
		}
		slope, offset := eng.GradF32(0), eng.GradF32(1)
		slope[0], offset[0] = 0, 0
		var sum float64
		n := 0
		for i := c.Rank(); i < points; i += c.Size() {
			x, y := point(i)
			d := w[0]*x + w[1] - y
			slope[0] += 2 * d * x
			offset[0] += 2 * d
			sum += float64(d * d)
			n++
		}
		for i := range 2 { // starts the reductions over all ranks
			if err := eng.Ready(i); err != nil {
				return w, 0, err
			}
		}
		if _, err := eng.Wait(ctx); err != nil {
			return w, 0, err
		}
		all, err := eng.Agree(ctx, ddp.Vote{Count: float64(n), LossSum: sum})
		if err != nil {
			return w, 0, err
		}
		const lr = 0.3
		w[0] -= lr * slope[0] / float32(all.Count) // one division, by the count over all ranks
		w[1] -= lr * offset[0] / float32(all.Count)
		loss = all.LossSum / all.Count
	}
	return w, loss, nil
}

func run(ctx context.Context, ranks, points, steps int) (w [2]float32, loss float64, err error) {
	comms := []comm.Communicator{self.New()}
	if ranks > 1 {
		if comms, err = shm.NewLocal(ranks); err != nil {
			return w, 0, err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for r, c := range comms {
		g.Go(func() error {
			defer c.Close()
			mine, l, err := fit(ctx, c, points, steps)
			if r == 0 {
				w, loss = mine, l
			}
			return err
		})
	}
	return w, loss, g.Wait()
}

func main() {
	for _, ranks := range []int{1, 2} {
		w, loss, err := run(context.Background(), ranks, 101, 60)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d rank(s): y = %.4f x + %.4f, loss %.2g\n", ranks, w[0], w[1], loss)
	}
}
