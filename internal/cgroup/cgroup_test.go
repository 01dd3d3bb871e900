package cgroup

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestDirs(t *testing.T) {
	const (
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		memory = "34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		docker = "34 31 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
	)
	for name, c := range map[string]struct {
		groups, mounts string
		want           []Dir
	}{
		"none":               {"", v2, nil},
		"version 2":          {"0::/a/b\n", v2, []Dir{{"sys/fs/cgroup/a/b", false}, {"sys/fs/cgroup/a", false}, {"sys/fs/cgroup", false}}},
		"out of sight":       {"0::/../../x\n", v2, []Dir{{"sys/fs/cgroup", false}}},
		"version 1":          {"4:cpu,cpuacct:/c\n3:memory:/a\n", memory, []Dir{{"sys/fs/cgroup/memory/a", true}, {"sys/fs/cgroup/memory", true}}},
		"its group on top":   {"3:memory:/docker/abc\n", docker, []Dir{{"sys/fs/cgroup/memory", true}}},
		"below its group":    {"3:memory:/docker/abc/d\n", docker, []Dir{{"sys/fs/cgroup/memory/d", true}, {"sys/fs/cgroup/memory", true}}},
		"another's prefix":   {"3:memory:/docker/abcd\n", docker, []Dir{{"sys/fs/cgroup/memory", true}}},
		"both":               {"3:memory:/\n0::/\n", hybrid + memory, []Dir{{"sys/fs/cgroup/memory", true}, {"sys/fs/cgroup/unified", false}}},
		"a mount with blank": {"0::/a b\n", `30 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n", []Dir{{"my groups/a b", false}, {"my groups", false}}},
		"nonsense":           {"x\n:::\n0:\n", "- - -\n" + v2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.groups)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
			if got := Dirs(root, "memory"); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := Dirs(fstest.MapFS{}, "cpu"); got != nil {
		t.Errorf("without /proc: %v", got)
	}
}
