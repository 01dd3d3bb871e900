package nodes

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
)

// maps are the ways to place four ranks; a smaller group is the beginning of one.
var maps = map[string][]int{
	"2x2":    {0, 0, 1, 1},
	"1+3":    {0, 1, 1, 1},
	"3+1":    {0, 0, 0, 1},
	"2+1+1":  {0, 0, 1, 2},
	"cyclic": {0, 1, 0, 1},
}

func suite(t *testing.T, nodeOf []int, change func(*Config), ranks ...int) {
	t.Parallel()
	commtest.Run(t, commtest.Transport{
		Ranks: ranks,
		New:   func(t *testing.T, n int) []comm.Communicator { return group(t, nodeOf[:n], change) },
		Kill:  vanish,
		Nodes: func(n int) []int { return nodeOf[:n] },
	})
}

func TestSuite(t *testing.T) {
	for name, nodeOf := range maps {
		ranks := []int{3, 4}
		if name == "2x2" && !testing.Short() {
			ranks = []int{1, 2, 3, 4} // the small groups are much the same on all maps
		}
		t.Run(name, func(t *testing.T) { suite(t, nodeOf, nil, ranks...) })
	}
}

// Small pieces, and nothing but tails carried by greetings: calls go in many pieces, from a few KiB on.
func TestSuiteInPieces(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	for _, name := range []string{"2+1+1", "cyclic"} { // through leaders, on rails
		t.Run(name, func(t *testing.T) { suite(t, maps[name], func(c *Config) { c.Piece, c.Small = 32<<10, 8 }, 3, 4) })
	}
}

// branches makes a second group of a job.
func branches(t *testing.T, nodeOf []int) (trunk, branch []comm.Communicator) {
	t.Helper()
	trunk = group(t, nodeOf, nil)
	branch = make([]comm.Communicator, len(trunk))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var mu sync.Mutex
	all(t, trunk, func(c *Comm) error {
		b, err := comm.Branch(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		branch[c.Rank()] = b
		return err
	})
	return trunk, branch
}

// A branch is a whole group.
func TestBranchSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	for _, name := range []string{"2x2", "2+1+1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commtest.Run(t, commtest.Transport{
				Ranks: []int{3, 4},
				New: func(t *testing.T, n int) []comm.Communicator {
					t.Helper()
					trunk, branch := branches(t, maps[name][:n])
					t.Cleanup(func() { closeAll(branch); closeAll(trunk) })
					return branch
				},
				Kill:  vanish,
				Nodes: func(n int) []int { return maps[name][:n] },
			})
		})
	}
}
