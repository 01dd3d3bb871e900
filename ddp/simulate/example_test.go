package simulate_test

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/bucket"
	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/npu"
)

// Four layers of 4 MiB on four machines with 1 Gbit/s.
func Example() {
	l, err := link.Parse("1gbit,50us")
	if err != nil {
		fmt.Println(err)
		return
	}
	var params []bucket.Param
	c := simulate.Compute{Forward: 100 * time.Millisecond, End: 300 * time.Millisecond}
	for i := range 4 {
		params = append(params, bucket.Param{Name: fmt.Sprintf("layer%d", 4-i), Elems: 1 << 20, DType: npu.F32})
		c.Ready = append(c.Ready, c.Forward+time.Duration(i+1)*50*time.Millisecond)
	}
	plan, err := bucket.New(params, bucket.Config{World: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := simulate.Step{Buckets: plan, Compute: c, Cluster: link.Cluster{Ranks: 4, Hosts: 4, Link: l}}
	for _, name := range []string{"none", "f16", "int8"} {
		s.Codec, _ = simulate.CodecOf(name)
		r, err := simulate.Run(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-4s %v exposed, %.0f %% of the speed of one rank\n", name, simulate.Round(r.Exposed), 100*r.Efficiency())
	}
	// Output:
	// none 112ms exposed, 73 % of the speed of one rank
	// f16  32.6ms exposed, 90 % of the speed of one rank
	// int8 15.6ms exposed, 95 % of the speed of one rank
}
