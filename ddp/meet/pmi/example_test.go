package pmi_test

import (
	"context"
	"fmt"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/meet/pmi"
)

func Example() {
	c, err := pmi.Open(launch.LookupIn(nil)) // os.LookupEnv in a program
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.Put(context.Background(), "gotrain-0", "10.0.0.1:41823")
	// Output: pmi: PMI_FD="" is not the number of a connection
}
