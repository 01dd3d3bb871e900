package telemetry_test

import (
	"fmt"
	"os"

	"github.com/gotrain/gotrain/train/telemetry"
)

func Example() {
	term := telemetry.NewTerminal(os.Stdout, 0, false) // telemetry.Stdout() in a program
	id := telemetry.Identity{Node: 0, Rank: 0, World: 2}
	bus := telemetry.NewBus(telemetry.NewConsole(term, id, telemetry.ConsoleOptions{}))
	bus.Emit(telemetry.Step{Step: 1, Total: 100, Loss: telemetry.Known(2.3026), LR: telemetry.Known(0.1), Throughput: telemetry.Known(35.2)})
	if err := bus.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [Node 0, Rank 0/2] Step 1/100: loss=2.3026 lr=0.1 npu_util=- throughput=35.2 samples/s comm_time=- compute_time=- wait=- data_time=- step_time=- mem=- mfu=- grad_norm=- epoch=-
}
