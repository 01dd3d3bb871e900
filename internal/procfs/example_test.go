package procfs_test

import (
	"fmt"
	"os"

	"github.com/gotrain/gotrain/internal/procfs"
)

func Example() {
	p, err := procfs.Read(os.Getpid())
	if err != nil {
		return // no /proc
	}
	fmt.Println(p.Parent == os.Getppid(), p.Ended())
	// On Linux: true false
}
