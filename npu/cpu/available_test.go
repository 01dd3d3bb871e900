//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"testing"
	"testing/fstest"
)

const mib = 1 << 20

// Numbers of files are in bytes, as the kernel writes them; meminfo's are in kB.
func TestAvailable(t *testing.T) {
	system := map[string]string{
		"proc/meminfo":        "MemTotal:       8388608 kB\nMemAvailable:   4194304 kB\n", // 4096 MiB
		"proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
	}
	for what, c := range map[string]struct {
		files       map[string]string
		free, limit int64
	}{
		"no limits": {map[string]string{"proc/self/cgroup": "0::/user.slice\n", "sys/fs/cgroup/user.slice/memory.max": "max\n",
			"sys/fs/cgroup/user.slice/memory.current": "1000\n"}, 4096 * mib, 0},
		// 1024 MiB allowed, 1000 in use, of which 900 are cached files.
		"a container full of cached files": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n",
			"sys/fs/cgroup/memory.current": "1048576000\n",
			"sys/fs/cgroup/memory.stat":    "anon 104857600\nfile 943718400\ninactive_file 838860800\nactive_file 104857600\nshmem 0\n"}, 924 * mib, 1024 * mib},
		// Shared memory is counted as files, but cannot be taken back.
		"shared memory": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "1048576000\n",
			"sys/fs/cgroup/memory.stat": "file 943718400\ninactive_file 0\nactive_file 0\nshmem 943718400\n"}, 24 * mib, 1024 * mib},
		"the group around has less left": {map[string]string{"proc/self/cgroup": "0::/pod/box\n",
			"sys/fs/cgroup/pod/box/memory.max": "2147483648\n", "sys/fs/cgroup/pod/box/memory.current": "0\n",
			"sys/fs/cgroup/pod/memory.max": "1073741824\n", "sys/fs/cgroup/pod/memory.current": "943718400\n",
			"sys/fs/cgroup/pod/memory.stat": "inactive_file 104857600\nactive_file 0\n"}, 224 * mib, 1024 * mib},
		"the path is the host's": {map[string]string{"proc/self/cgroup": "0::/docker/5f3a\n", "sys/fs/cgroup/memory.max": "1073741824\n",
			"sys/fs/cgroup/memory.current": "524288000\n"}, 524 * mib, 1024 * mib},
		"version 1": {map[string]string{"proc/self/cgroup": "9:name=systemd:/\n4:memory:/box\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "5242880000\n",
			"sys/fs/cgroup/memory/box/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "1048576000\n",
			"sys/fs/cgroup/memory/box/memory.stat": "cache 1\ninactive_file 0\nactive_file 0\ntotal_inactive_file 838860800\ntotal_active_file 104857600\n"},
			924 * mib, 1024 * mib},
		"beyond the limit": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n",
			"sys/fs/cgroup/memory.current": "2097152\n"}, 1, mib},
	} {
		t.Run(what, func(t *testing.T) {
			root := fstest.MapFS{}
			for _, files := range []map[string]string{system, c.files} {
				for name, text := range files {
					root[name] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			m := machine{root}
			if got := m.available(); got != c.free {
				t.Errorf("available: %.1f MiB, want %.1f", float64(got)/mib, float64(c.free)/mib)
			}
			if limit := m.limit(); limit != c.limit {
				t.Errorf("limit: %.1f MiB, want %.1f", float64(limit)/mib, float64(c.limit)/mib)
			}
		})
	}
	if got := (machine{fstest.MapFS{}}).available(); got != 0 {
		t.Errorf("nothing is known: %d", got)
	}
	if got := here().available(); got < 16*mib {
		t.Errorf("this machine: %d", got)
	}
}
