package compress_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/compress"
)

// A loop of one's own: two ranks reduce the gradients of a matrix as 8 bits, those of its bias as float32.
func ExampleNew() {
	group, err := shm.NewLocal(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, c := range group {
		wg.Go(func() {
			defer c.Close()
			ctx := context.Background()
			codec, err := compress.New("int8", compress.Options{Raw: func(param string) bool { return param == "bias" }})
			if err != nil {
				fmt.Println(err)
				return
			}
			eng, err := ddp.New(ctx, ddp.Config{Comm: c, Codec: codec, Params: []ddp.Param{{Name: "matrix", Elems: 4096}, {Name: "bias", Elems: 64}}})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer eng.Close()
			for step := range int64(3) {
				if err := eng.Begin(step, true); err != nil {
					fmt.Println(err)
					return
				}
				for i := range 2 {
					for j := range eng.GradF32(i) {
						eng.GradF32(i)[j] = float32(c.Rank() + 1)
					}
					if err := eng.Ready(i); err != nil {
						fmt.Println(err)
						return
					}
				}
				stats, err := eng.Wait(ctx)
				if err != nil {
					fmt.Println(err)
					return
				}
				ok := !stats.Coded.NonFinite // all ranks see the same
				if ok && step == 2 && c.Rank() == 0 {
					fmt.Printf("bias %g, matrix %.2f, %.1f times smaller\n", eng.GradF32(1)[0], eng.GradF32(0)[0], float64(stats.Coded.Raw)/float64(stats.Coded.Sent))
				}
				eng.Settle(ok) // the step was applied: what rounding has lost is added to the next one
			}
		})
	}
	wg.Wait()
	// Output: bias 3, matrix 3.00, 3.5 times smaller
}
