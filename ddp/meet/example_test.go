package meet_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gotrain/gotrain/ddp/meet"
)

func ExampleRanks() {
	fmt.Println(meet.Ranks([]int{0, 2, 4, 5, 6, 7}))
	// Output: ranks 0, 2, 4–7
}

// Three ranks meet; here they are in one process, and rank 0 publishes its address in a variable. Package find has places for processes.
func ExampleJoin() {
	ctx := context.Background()
	published := make(chan string, 3)
	place := meet.Place{
		How: "a channel",
		Publish: func(_ context.Context, addr string, _ []byte) error {
			published <- addr
			published <- addr
			return nil
		},
		Lookup: func(context.Context) (string, []byte, error) { return <-published, nil, nil },
	}
	var wg sync.WaitGroup
	for rank := range 3 {
		wg.Go(func() {
			g, err := meet.Join(ctx, meet.Config{Rank: rank, World: 3, LocalRank: -1, LocalWorld: -1, Node: -1, Nodes: 1, Job: "example",
				Token: []byte("secret of the job"), Place: place})
			if err != nil {
				fmt.Println(err)
				return
			}
			defer g.Close()
			words, err := g.Exchange(ctx, "words", []byte(fmt.Sprint("word", rank)))
			if rank == 0 {
				fmt.Printf("%d ranks on %d node: %s %v\n", len(g.Roster().Members), g.Roster().Nodes(), words, err)
			}
		})
	}
	wg.Wait()
	// Output: 3 ranks on 1 node: [word0 word1 word2] <nil>
}
