package launch_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gotrain/gotrain/ddp/launch"
)

func ExampleWhoAmI() {
	// In a program: launch.Self().
	id, err := launch.WhoAmI(launch.LookupIn([]string{
		"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
		"OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
		"PMIX_NAMESPACE=1226375169",
	}))
	fmt.Println(id, err)

	_, err = launch.WhoAmI(launch.LookupIn([]string{"RANK=1", "LOCAL_RANK=1"}))
	fmt.Println(err)
	// Output:
	// rank 1 of 2 (local 1 of 2, node 0 of 1) from openmpi, job ompi-1226375169 <nil>
	// launch: environment of torchrun (RANK, WORLD_SIZE, LOCAL_RANK): WORLD_SIZE: not set, but other variables of this launcher are
	// hint: set it; to run without this launcher, unset the others or set GOTRAIN_LAUNCHER=none
}

func ExampleSupervise() {
	err := launch.Supervise(context.Background(), launch.Job{
		Argv:  []string{"sh", "-c", `[ $GOTRAIN_RANK = 0 ] || { sleep 0.2; echo "hello from $GOTRAIN_RANK of $GOTRAIN_WORLD_SIZE"; }`},
		Ranks: 2, Stdout: os.Stdout, Stderr: os.Stdout,
	})
	fmt.Println(err, launch.ExitCode(err))
	// Output:
	// [rank 1] hello from 1 of 2
	// <nil> 0
}
