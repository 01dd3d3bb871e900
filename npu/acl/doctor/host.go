package doctor

import (
	"errors"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/internal/amount"
)

// readSome reads at most a megabyte: the files that are read have some kilobytes.
func readSome(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, 1<<20))
	return string(b)
}

// host examines what training needs of the machine itself.
func (x *exam) host() {
	p := x.probe(Request{Stage: StageHost}, "opening the device cpu")
	if p == nil {
		p = &Probe{}
	}
	x.cores(p)
	x.memory()
	x.limits()
	x.shm()
	if p.CPU != "" {
		x.ok("", "device cpu: %s", p.CPU)
	}
	if p.CPUError != "" {
		x.add(Warning, "", "install oneDNN (libdnnl) or set GOTRAIN_ONEDNN to its path; scripts/setup.sh says how", "device cpu is not usable: %s", p.CPUError)
	}
}

func (x *exam) cores(p *Probe) {
	n := strings.Count("\n"+x.text("proc/cpuinfo"), "\nprocessor")
	if allowed := x.status("Cpus_allowed_list"); allowed != "" {
		if k := len(list(allowed)); k > 0 && k < n {
			x.note("/proc/self/status", "this process may use %d of %d cores (%s)", k, n, allowed)
		}
	}
	arch := p.Arch
	if p.PageSize > 0 {
		arch += ", pages of " + amount.Bytes(int64(p.PageSize))
	}
	x.ok("/proc/cpuinfo", "%d cores, %s", n, strings.TrimPrefix(arch, ", "))
	if quota := strings.Fields(x.text("sys/fs/cgroup/cpu.max")); len(quota) == 2 && quota[0] != "max" {
		a, _ := strconv.ParseFloat(quota[0], 64)
		if b, _ := strconv.ParseFloat(quota[1], 64); b > 0 {
			x.note("/sys/fs/cgroup/cpu.max", "the container may use %.1f cores", a/b)
		}
	}
}

// status is a field of /proc/self/status.
func (x *exam) status(field string) string {
	for line := range strings.Lines(x.text("proc/self/status")) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == field {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// list parses "0-3,8".
func list(s string) []int {
	var l []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(part), "-")
		if !ok {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < 0 || b > 1<<20 || b-a > 1<<16-len(l) { // no machine has so many
			return nil
		}
		for ; a <= b; a++ {
			l = append(l, a)
		}
	}
	return l
}

func (x *exam) memory() {
	var total, free int64
	for line := range strings.Lines(x.text("proc/meminfo")) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			total = n << 10
		case "MemAvailable:":
			free = n << 10
		}
	}
	if total == 0 {
		x.note("/proc/meminfo", "memory is not told")
		return
	}
	x.ok("/proc/meminfo", "%s of memory, %s available", amount.Bytes(total), amount.Bytes(free))
	if n, err := strconv.ParseInt(x.text("sys/fs/cgroup/memory.max"), 10, 64); err == nil && n < total {
		x.note("/sys/fs/cgroup/memory.max", "the container may use %s of it", amount.Bytes(n))
	}
}

// limits are those of the process. Page-locked memory of CANN does not count as locked memory of the process where the driver maps it, but RDMA's does.
func (x *exam) limits() {
	const file = "/proc/self/limits"
	for line := range strings.Lines(x.text(file)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "Max locked memory") && !x.absent:
			x.limit(line[len("Max locked memory"):], 64<<20, "may be locked in memory (memlock)",
				"ulimit -l unlimited, memlock in /etc/security/limits.conf, or "+
					"--ulimit memlock=-1 of a container: page-locked buffers need it", true)
		case strings.HasPrefix(line, "Max open files"):
			x.limit(line[len("Max open files"):], 4096, "files may be open", "ulimit -n 65536", false)
		}
	}
}

func (x *exam) limit(line string, least int64, what, remedy string, bytes bool) {
	f := strings.Fields(line)
	if len(f) == 0 || f[0] == "unlimited" {
		return
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || n >= least {
		return
	}
	size := amount.Count(n)
	if bytes {
		size = amount.Bytes(n)
	}
	s := Warning
	if x.absent {
		s = Note
	}
	x.add(s, "/proc/self/limits", remedy, "at most %s %s", size, what)
}

// shm is the folder through which the ranks of a machine meet.
func (x *exam) shm() {
	out, err := x.sys.Command(x.ctx, "df", "-k", "/dev/shm")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	f := strings.Fields(lines[len(lines)-1])
	if err != nil || len(f) < 4 {
		x.add(Error, "df -k /dev/shm", "mount a tmpfs there, or --ipc=host of a container: ranks of one machine meet in it", "/dev/shm cannot be used")
		return
	}
	free, err := strconv.ParseInt(f[3], 10, 64)
	switch {
	case err != nil:
	case free < 16<<10:
		x.add(Warning, "df -k /dev/shm", "remove what is left there, or --shm-size=1g of a container",
			"/dev/shm has only %s left; each rank takes about a megabyte",
			amount.Bytes(free<<10))
	default:
		x.ok("df -k /dev/shm", "/dev/shm has %s left", amount.Bytes(free<<10))
	}
}
