package doctor

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// leftovers finds what earlier runs left behind.
func (x *exam) leftovers() {
	found := x.meetings() + x.ranks()
	if found == 0 {
		x.ok("/dev/shm, /proc", "nothing is left of earlier runs")
	}
}

// meetings are meeting points of ranks: a file has a name only while the ranks of a job come together.
func (x *exam) meetings() int {
	dir := fmt.Sprintf("dev/shm/gotrain-%d", x.o.UID)
	entries, err := fs.ReadDir(x.fs, dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		n++
		x.add(Warning, "/"+dir, "if no run is starting at this moment: rm /"+path.Join(dir, e.Name()),
			"ranks of job %s did not all come together, or still wait for each other", e.Name())
	}
	return n
}

// ranks are processes of this user that were ranks and whose supervisor is gone: they may hold a device.
func (x *exam) ranks() int {
	n := 0
	for _, dir := range x.glob("proc/[0-9]*") {
		pid, err := strconv.Atoi(path.Base(dir))
		if err != nil || pid == x.o.PID {
			continue
		}
		env := map[string]string{}
		for _, kv := range strings.Split(x.text(dir+"/environ"), "\x00") {
			if k, v, ok := strings.Cut(kv, "="); ok && (k == "GOTRAIN_RANK" || k == "GOTRAIN_JOB_ID") {
				env[k] = v
			}
		}
		if env["GOTRAIN_RANK"] == "" {
			continue
		}
		stat := x.text(dir + "/stat")
		f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		switch {
		case len(f) < 2 || f[0] == "Z" || f[0] == "X":
		case f[1] == "1":
			n++
			x.add(Warning, "/"+dir, fmt.Sprintf("kill %d", pid), "process %d is rank %s of job %s, and its supervisor is gone", pid, env["GOTRAIN_RANK"],
				env["GOTRAIN_JOB_ID"])
		default:
			n++
			x.note("/"+dir, "process %d is rank %s of job %s: a run is under way", pid, env["GOTRAIN_RANK"], env["GOTRAIN_JOB_ID"])
		}
	}
	return n
}
