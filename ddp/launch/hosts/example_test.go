package hosts_test

import (
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch/hosts"
)

func Example() {
	l, err := hosts.ParseList("n1:8,root@n2:8,[fe80::1]:4,n1")
	if err != nil {
		panic(err)
	}
	for _, h := range l.Hosts {
		fmt.Println(h)
	}
	// Output:
	// n1:9
	// root@n2:8
	// [fe80::1]:4
}
