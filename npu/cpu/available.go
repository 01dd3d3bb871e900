//go:build cgo && linux && (amd64 || arm64)

package cpu

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/internal/cgroup"
)

// machine reads the kernel's files about memory: those of this system, except in tests.
type machine struct{ root fs.FS }

func here() machine { return machine{os.DirFS("/")} }

// available is the memory that this process can still allocate, by the system and its control groups; 0 if unknown.
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
	return max(free, 1) // 0 would mean unknown
}

// limit is the lowest limit of the control groups, or 0 without a limit.
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

// group is the memory of a limited control group, in bytes.
type group struct{ limit, used, reclaimable int64 }

// free includes what the kernel would reclaim before it refuses an allocation: the group's page cache. A file that a process of the group has read stays
// there until memory is needed, so a container that has read many files always looks full.
func (g group) free() int64 { return g.limit - max(0, g.used-g.reclaimable) }

// groups lists the control groups with a limit that applies to this process.
func (m machine) groups() []group {
	var list []group
	for _, dir := range cgroup.Dirs(m.root, "memory") {
		limit, used, total := "memory.max", "memory.current", ""
		if dir.V1 {
			limit, used, total = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
		}
		g := group{}
		var err1, err2 error
		g.limit, err1 = strconv.ParseInt(strings.TrimSpace(m.read(path.Join(dir.Path, limit))), 10, 64) // "max" does not parse
		g.used, err2 = strconv.ParseInt(strings.TrimSpace(m.read(path.Join(dir.Path, used))), 10, 64)
		if err1 != nil || err2 != nil {
			continue
		}
		stat := m.read(path.Join(dir.Path, "memory.stat"))
		for _, name := range []string{"inactive_file", "active_file"} {
			n, _ := field(stat, total+name)
			g.reclaimable += n
		}
		list = append(list, g)
	}
	return list
}

// read returns the text of a file, or "" if it cannot be read.
func (m machine) read(file string) string {
	b, err := fs.ReadFile(m.root, file)
	if err != nil {
		return ""
	}
	return string(b)
}

// field returns the number after a name at the start of a line.
func field(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
