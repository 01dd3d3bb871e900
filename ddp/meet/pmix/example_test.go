package pmix_test

import (
	"context"
	"fmt"
	"os"

	"github.com/gotrain/gotrain/ddp/meet/pmix"
)

func Example() {
	if os.Getenv("PMIX_NAMESPACE") == "" {
		fmt.Println("not started by a launcher with PMIx")
		return
	}
	path, err := pmix.Find(os.LookupEnv)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := pmix.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.Barrier(context.Background())
	// Output: not started by a launcher with PMIx
}
