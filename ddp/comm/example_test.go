package comm_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/shm"
)

// Two all-reduces in flight, then a deadline that a missing rank lets pass.
func Example() {
	group, err := shm.NewLocal(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, c := range group {
		wg.Go(func() {
			ctx := context.Background()
			a, b := []float32{1, 2}, []int64{int64(c.Rank())}
			first, err1 := c.AllReduce(ctx, comm.HostOf(a), comm.Sum)
			second, err2 := c.AllReduce(ctx, comm.HostOf(b), comm.Max)
			if err1 == nil && err2 == nil {
				err1, err2 = first.Wait(ctx), second.Wait(ctx)
			}
			if c.Rank() == 1 {
				fmt.Println(a, b, err1, err2)
			}
		})
	}
	wg.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = comm.Wait(ctx)(group[0].Barrier(ctx))
	if late, ok := err.(*comm.TimeoutError); ok {
		fmt.Println("late:", late.Missing)
	}
	for _, c := range group {
		c.Close()
	}
	// Output:
	// [2 4] [1] <nil> <nil>
	// late: [1]
}

// Ranks compare what they are about to do.
func ExampleConsensus() {
	group, err := shm.NewLocal(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, c := range group {
		wg.Go(func() {
			defer c.Close()
			err := comm.Consensus(context.Background(), c, "the recipe", []comm.Item{
				{Name: "model", Text: "resnet50"},
				{Name: "batch", Text: fmt.Sprint(16 << c.Rank())},
			})
			if c.Rank() == 0 {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	// Output: comm: ranks disagree on the recipe: item 1 is batch = 16 on rank 0, but batch = 32 on rank 1 (differing ranks: [1])
}
