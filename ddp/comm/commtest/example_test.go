package commtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/commtest"
	"github.com/gotrain/gotrain/ddp/comm/self"
)

// A wire of 1 MB/s: 20 kB take 20 ms.
func ExampleSlow() {
	c := commtest.Slow(self.New(), 1e6)
	ctx := context.Background()
	begin := time.Now()
	err := comm.Wait(ctx)(c.AllReduce(ctx, comm.HostOf(make([]float32, 5000)), comm.Sum))
	fmt.Println(time.Since(begin) >= 20*time.Millisecond, err)
	// Output: true <nil>
}
