package launch

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
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
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return q, false
	}
	mounts, _ := fs.ReadFile(root, "proc/self/mountinfo")
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3) // 0::/a/b or 4:cpu,cpuacct:/a/b
		if len(part) != 3 {
			continue
		}
		kind, read := "cgroup2", cpuMax
		if part[1] != "" {
			if !hasWord(part[1], "cpu") {
				continue
			}
			kind, read = "cgroup", cfsQuota
		}
		for _, m := range mountsOf(string(mounts), kind) {
			for dir := m.dir(part[2]); ; dir = path.Dir(dir) {
				if n, from, found := read(root, dir); found && (!ok || n < q.cpus) {
					q, ok = quota{n, "/" + from}, true
				}
				if dir == m.at || dir == "." || dir == "/" {
					break
				}
			}
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

// mount is a mount point of a control group hierarchy, which shows the groups from root downwards.
type mount struct{ root, at string }

// mountsOf lists the mounts of a kind; for v1, those with the cpu controller.
func mountsOf(mountinfo, kind string) (out []mount) {
	for line := range strings.Lines(mountinfo) {
		left, right, found := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !found || len(l) < 5 || len(r) < 3 || r[0] != kind || kind == "cgroup" && !hasWord(r[2], "cpu") {
			continue
		}
		out = append(out, mount{unescape(l[3]), strings.TrimPrefix(path.Clean(unescape(l[4])), "/")})
	}
	return out
}

// dir returns the directory of a group. A group outside the root of the mount is not visible to this process, as in a container: then dir returns the top
// of the mount.
func (m mount) dir(group string) string {
	rest, below := strings.CutPrefix(path.Clean("/"+group), strings.TrimSuffix(path.Clean(m.root), "/"))
	if !below || rest != "" && rest[0] != '/' || strings.Contains(group, "..") {
		rest = ""
	}
	return path.Join(m.at, rest)
}

// unescape decodes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// hasWord reports whether a comma-separated list contains a word.
func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
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
