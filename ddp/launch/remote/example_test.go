package remote_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch/remote"
)

func ExampleMaster() {
	// The user's choice is taken as it is; otherwise the hosts try which address of the first one they can all connect to.
	here := remote.NewHere("n1")
	defer here.Close()
	addr, port, err := remote.Master(context.Background(), []remote.Node{here}, remote.Meeting{Addr: "192.168.1.10", Port: 29500})
	fmt.Println(addr, port, err)
	// Output: 192.168.1.10 29500 <nil>
}
