package tune_test

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/npu/tune"
)

func ExampleDecide() {
	ms := time.Millisecond
	ts := []tune.Timing{{Name: "direct", Best: 100 * ms}, {Name: "winograd4", Best: 96 * ms}, {Name: "winograd2", Best: 80 * ms}}
	fmt.Println(ts[tune.Decide(ts[:2])].Name) // 4 % may be noise
	fmt.Println(ts[tune.Decide(ts)].Name)
	// Output:
	// direct
	// winograd2
}
