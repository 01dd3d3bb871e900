package cgroup_test

import (
	"fmt"
	"testing/fstest"

	"github.com/gotrain/gotrain/internal/cgroup"
)

func ExampleDirs() {
	root := fstest.MapFS{
		"proc/self/cgroup":    {Data: []byte("0::/pod/box\n")},
		"proc/self/mountinfo": {Data: []byte("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
	}
	for _, d := range cgroup.Dirs(root, "memory") {
		fmt.Println(d.Path)
	}
	// Output:
	// sys/fs/cgroup/pod/box
	// sys/fs/cgroup/pod
	// sys/fs/cgroup
}
