//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine reads what the kernel says of memory, in files below a root: "/", but in tests.
type machine struct{ root string }

// available is how much memory this process may still take, by the system and by its control groups; 0 if that cannot be told.
func (m machine) available() int64 {
	free := int64(math.MaxInt64)
	if kb, ok := field(m.read("proc/meminfo"), "MemAvailable:"); ok {
		free = kb << 10
	}
	for _, g := range m.groups() {
		free = min(free, g.free())
	}
	if free == math.MaxInt64 {
		return 0
	}
	return max(free, 1) // 0 would mean that nobody knows
}

// limit is the least limit of the control groups, or 0 if there is none.
func (m machine) limit() int64 {
	least := int64(math.MaxInt64)
	for _, g := range m.groups() {
		least = min(least, g.limit)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// total is the memory of the machine, or of the control groups where they allow less; 0 if unknown.
func (m machine) total() int64 {
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) != nil {
		return m.limit()
	}
	ram := int64(si.Totalram) * int64(si.Unit)
	if limit := m.limit(); limit > 0 {
		return min(ram, limit)
	}
	return ram
}

// group is the memory of a control group with a limit, in bytes.
type group struct{ limit, used, reclaimable int64 }

// free counts what the kernel would take back before it refuses memory: pages of files, read or written, that are in the group's cache. Each file that
// a process of the group has read is there until somebody needs the room, so a container that has read much is always "full".
func (g group) free() int64 { return g.limit - max(0, g.used-g.reclaimable) }

// groups are the control groups of this process that have a limit, and those around them, since a limit holds for all below it. In a container the path may
// be the host's while the mount shows only what is below; so the groups along the path that are not there are passed over.
func (m machine) groups() []group {
	var list []group
	for line := range strings.Lines(m.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			for _, mount := range []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"} {
				list = append(list, m.along(mount, parts[2], "memory.max", "memory.current", "")...)
			}
		case strings.Contains(","+parts[1]+",", ",memory,"): // version 1
			list = append(list, m.along("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")...)
		}
	}
	return list
}

func (m machine) along(mount, p, limit, used, total string) []group {
	var list []group
	for p = path.Clean("/" + p); ; p = path.Dir(p) {
		dir := path.Join(mount, p)
		g := group{}
		var err1, err2 error
		g.limit, err1 = strconv.ParseInt(strings.TrimSpace(m.read(path.Join(dir, limit))), 10, 64) // "max" is no number
		g.used, err2 = strconv.ParseInt(strings.TrimSpace(m.read(path.Join(dir, used))), 10, 64)
		if err1 == nil && err2 == nil {
			stat := m.read(path.Join(dir, "memory.stat"))
			for _, name := range []string{"inactive_file", "active_file"} {
				n, _ := field(stat, total+name)
				g.reclaimable += n
			}
			list = append(list, g)
		}
		if p == "/" {
			return list
		}
	}
}

// read is the text of a file, empty where there is none.
func (m machine) read(file string) string {
	b, err := os.ReadFile(filepath.Join(m.root, file))
	if err != nil {
		return ""
	}
	return string(b)
}

// field is the number behind a name at the start of a line.
func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
