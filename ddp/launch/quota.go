package launch

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/internal/cgroup"
)

// quota is the processor time that the control groups of a process allow, in processors: 1.5 means 150 ms per 100 ms. The tightest limit of all groups
// from the process's own to the root applies.
type quota struct {
	cpus float64
	from string // the file with the limit
}

// machine is the file system that quotas are read from.
var machine fs.FS = os.DirFS("/")

// readQuota reads the quota of this process from control groups v2 and v1; ok is false if there is no limit.
func readQuota(root fs.FS) (q quota, ok bool) {
	for _, dir := range cgroup.Dirs(root, "cpu") {
		read := cpuMax
		if dir.V1 {
			read = cfsQuota
		}
		if n, from, found := read(root, dir.Path); found && (!ok || n < q.cpus) {
			q, ok = quota{n, "/" + from}, true
		}
	}
	return q, ok
}

// cpuMax reads the v2 limit: "150000 100000" or "max 100000".
func cpuMax(root fs.FS, dir string) (cpus float64, from string, ok bool) {
	from = path.Join(dir, "cpu.max")
	b, err := fs.ReadFile(root, from)
	f := strings.Fields(string(b))
	if err != nil || len(f) != 2 {
		return 0, "", false
	}
	return ratio(f[0], f[1], from)
}

// cfsQuota reads the v1 limit: microseconds per period, or -1 for none.
func cfsQuota(root fs.FS, dir string) (cpus float64, from string, ok bool) {
	from = path.Join(dir, "cpu.cfs_quota_us")
	q, err := fs.ReadFile(root, from)
	p, err2 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil || err2 != nil {
		return 0, "", false
	}
	return ratio(strings.TrimSpace(string(q)), strings.TrimSpace(string(p)), from)
}

func ratio(quota, period, from string) (float64, string, bool) {
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err != nil || err2 != nil || !(q > 0) || !(p > 0) || math.IsInf(q, 0) || math.IsInf(p, 0) { // "max" and -1 are no limits
		return 0, "", false
	}
	return q / p, from, true
}

// limit caps the threads of each of n ranks to what the quota allows, and sets Why if it did. More threads than processor time are much slower:
// at every barrier, all wait for the threads whose time is used up.
func (p *Placement) limit(n int, root fs.FS) {
	q, ok := readQuota(root)
	if !ok {
		return
	}
	most := max(1, int(q.cpus/float64(max(1, n))))
	if most >= p.Threads {
		return
	}
	p.Threads = most
	plural, share := "", ""
	if most > 1 {
		plural = "s"
	}
	if n > 1 {
		share = fmt.Sprintf(", shared by %d ranks", n)
	}
	p.Why = fmt.Sprintf("%d compute thread%s per rank: the CPU quota is %.3g processors (%s)%s", most, plural, q.cpus, q.from, share)
}
