package nodes

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/staged"
	"github.com/gotrain/gotrain/ddp/comm/tcp"
	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/ref"
)

// overTCP makes a job whose nodes are connected by TCP over loopback.
func overTCP(t *testing.T, nodeOf []int) []comm.Communicator {
	t.Helper()
	rails := map[int][]comm.Communicator{} // by the first rank
	flat := connected(t, len(nodeOf))
	return group(t, nodeOf, func(c *Config) {
		c.Flat.Close()
		c.Flat = flat[c.Rank]
		rail, err := Rail(c.Rank, nodeOf)
		if err != nil {
			t.Fatal(err)
		}
		if rail == nil {
			return
		}
		if rails[rail[0]] == nil {
			rails[rail[0]] = connected(t, len(rail))
		}
		c.Outer.Close()
		c.Outer = rails[rail[0]][nodeOf[c.Rank]]
	})
}

func connected(t *testing.T, n int) []comm.Communicator {
	t.Helper()
	g, err := tcp.NewLocal(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSuiteOverTCP(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	for _, name := range []string{"2x2", "1+3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			commtest.Run(t, commtest.Transport{
				Ranks: []int{2, 3, 4},
				New:   func(t *testing.T, n int) []comm.Communicator { return overTCP(t, maps[name][:n]) },
				Nodes: func(n int) []int { return maps[name][:n] },
			})
		})
	}
}

func TestChainsOverTCP(t *testing.T) {
	g := overTCP(t, maps["2x2"])
	defer closeAll(g)
	checkChains(t, g, maps["2x2"])
}

// Devices with memory of their own are staged through a second group, which Branch makes.
func TestStagedOverTCP(t *testing.T) {
	const n = 4
	control := overTCP(t, maps["2x2"])
	defer closeAll(control)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, c := range control {
		wg.Go(func() {
			errs[r] = func() error {
				dev, err := npu.Open("ref", npu.Options{Threads: 1, Extra: map[string]string{"memory": "separate"}})
				if err != nil {
					return err
				}
				data, err := staged.Open(ctx, comm.Opening{Control: c, Device: dev, Timeout: time.Minute})
				if err == nil {
					err = commtest.Transport{Device: func(comm.Communicator) npu.Device { return dev },
						Nodes: func(n int) []int { return maps["2x2"][:n] }}.Worker(ctx, data)
					err = errors.Join(err, data.Close())
				}
				return errors.Join(err, dev.Close())
			}()
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
