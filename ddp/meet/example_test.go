package meet_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/meet"
)

func ExampleRanks() {
	fmt.Println(meet.Ranks([]int{0, 2, 4, 5, 6, 7}))
	// Output: ranks 0, 2, 4–7
}
