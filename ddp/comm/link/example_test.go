package link_test

import (
	"fmt"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/link"
)

// What 25 MiB of gradients cost on a network.
func Example() {
	l, err := link.Parse("25gbit,20us")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l)
	fmt.Println(l.Says(link.Auto, 4))
	fmt.Println("flat:", l.Reduced(link.Auto, 4, 25<<20).Round(100*time.Microsecond))
	c := link.Cluster{Ranks: 32, Hosts: 4, Link: l}
	fmt.Println("8 ranks a host:", c.AllReduce(25<<20).Round(100*time.Microsecond))
	// Output:
	// 23.5 Gbit/s, 20µs
	// exchange below 37 KiB, mesh from there (4 ranks, 23.5 Gbit/s, 20µs)
	// flat: 15.4ms
	// 8 ranks a host: 14.8ms
}
