package nodes_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/comm/nodes"
)

// Four ranks on two hosts with two each: each rank reduces its part with the rank of equal index on the other host.
func ExampleRail() {
	for rank := range 4 {
		rail, err := nodes.Rail(rank, []int{0, 0, 1, 1})
		fmt.Println(rank, rail, err)
	}
	// Output:
	// 0 [0 2] <nil>
	// 1 [1 3] <nil>
	// 2 [0 2] <nil>
	// 3 [1 3] <nil>
}
