package launch

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestQuota(t *testing.T) {
	const (
		v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1 = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
			"33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		docker = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,relatime - cgroup cgroup rw,cpu,cpuacct\n"
	)
	for _, c := range []struct {
		name, cgroup, mounts string
		files                string // path=content, separated by semicolons
		cpus                 float64
		from                 string
	}{
		{"none", "0::/\n", v2, "", 0, ""},
		{"no control groups at all", "", "", "", 0, ""},
		{"version 2, no limit", "0::/a\n", v2, "sys/fs/cgroup/a/cpu.max=max 100000", 0, ""},
		{"version 2, in a container", "0::/\n", v2, "sys/fs/cgroup/cpu.max=150000 100000\n", 1.5, "/sys/fs/cgroup/cpu.max"},
		{"version 2, the narrowest of nested groups", "0::/a/b/c\n", v2,
			"sys/fs/cgroup/a/cpu.max=50000 100000;sys/fs/cgroup/a/b/cpu.max=max 100000;sys/fs/cgroup/a/b/c/cpu.max=400000 100000", 0.5, "/sys/fs/cgroup/a/cpu.max"},
		{"version 2, a group outside of what can be seen", "0::/../../x\n", v2, "sys/fs/cgroup/cpu.max=200000 100000", 2, "/sys/fs/cgroup/cpu.max"},
		{"version 1", "4:cpuset:/a\n3:cpu,cpuacct:/a\n", v1,
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us=300000\n;sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us=100000\n;" +
				"sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us=1", 3, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us"},
		{"version 1, no limit", "3:cpu,cpuacct:/\n", v1, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us=-1;sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us=100000", 0, ""},
		{"version 1, in a container that sees its own group as the top", "3:cpu,cpuacct:/docker/abc\n", docker,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us=50000;sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us=100000", 0.5, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"},
		{"both versions", "3:cpu,cpuacct:/\n0::/a\n", strings.ReplaceAll(v2, "/sys/fs/cgroup ", "/sys/fs/cgroup/unified ") + v1,
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us=400000;sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us=100000;" +
				"sys/fs/cgroup/unified/a/cpu.max=250000 100000", 2.5, "/sys/fs/cgroup/unified/a/cpu.max"},
		{"a mount with a blank", "0::/a b\n", `30 23 0:26 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n",
			"my groups/a b/cpu.max=100000 50000", 2, "/my groups/a b/cpu.max"},
		{"nonsense", "0::/\nx\n:::\n", v2 + "- - -\n", "sys/fs/cgroup/cpu.max=NaN 0", 0, ""},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte(c.cgroup)}, "proc/self/mountinfo": {Data: []byte(c.mounts)}}
		for f := range strings.SplitSeq(c.files, ";") {
			if name, content, ok := strings.Cut(f, "="); ok {
				root[name] = &fstest.MapFile{Data: []byte(content)}
			}
		}
		q, ok := readQuota(root)
		if ok != (c.cpus > 0) || q.cpus != c.cpus || q.from != c.from {
			t.Errorf("%s: %+v %v", c.name, q, ok)
		}
	}
	if _, ok := readQuota(fstest.MapFS{}); ok {
		t.Error("a quota without /proc")
	}
}

func TestThreadsUnderQuota(t *testing.T) {
	for _, c := range []struct {
		max            string
		ranks, threads int
		want           int
		why            string
	}{
		{"max 100000", 1, 8, 8, ""},
		{"150000 100000", 1, 8, 1, "1 compute thread per rank: the CPU quota is 1.5 processors (/sys/fs/cgroup/cpu.max)"},
		{"50000 100000", 1, 8, 1, "the CPU quota is 0.5 processors"},
		{"390000 100000", 1, 8, 3, "3 compute threads per rank: the CPU quota is 3.9 processors (/sys/fs/cgroup/cpu.max)"},
		{"400000 100000", 2, 4, 2, "2 compute threads per rank: the CPU quota is 4 processors (/sys/fs/cgroup/cpu.max), shared by 2 ranks"},
		{"400000 100000", 8, 2, 1, "1 compute thread per rank"},
		{"1600000 100000", 2, 4, 4, ""},
	} {
		root := fstest.MapFS{
			"proc/self/cgroup":      {Data: []byte("0::/\n")},
			"proc/self/mountinfo":   {Data: []byte("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
			"sys/fs/cgroup/cpu.max": {Data: []byte(c.max)},
		}
		p := Placement{Threads: c.threads}
		if p.limit(c.ranks, root); p.Threads != c.want || !strings.Contains(p.Why, c.why) || (p.Why == "") != (c.why == "") {
			t.Errorf("%s for %d ranks: %+v", c.max, c.ranks, p)
		}
	}
}
