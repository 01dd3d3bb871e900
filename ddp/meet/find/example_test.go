package find_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet/find"
)

func Example() {
	env := launch.LookupIn([]string{"RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=8", "MASTER_ADDR=192.168.1.10", "MASTER_PORT=29500"})
	id, err := launch.WhoAmI(env)
	if err != nil {
		panic(err)
	}
	place, err := find.Where(id, env)
	if err != nil {
		panic(err)
	}
	fmt.Println(place.Addr)
	fmt.Println(place.Warning())
	// Output:
	// 192.168.1.10:29500
	// the ranks meet at MASTER_ADDR=192.168.1.10 MASTER_PORT=29500 without a token: only mistakes, not strangers, are kept out
	// hint: set GOTRAIN_JOB_TOKEN, or GOTRAIN_TOKEN_FILE to a file with mode 0600, to the same secret on all hosts
}
