package main

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gotrain/gotrain/train/foreign"
)

// usage is the processor time that the machine and this process have used, for the question how much others had.
type usage struct {
	at         time.Time
	all, total time.Duration // busy, and busy or idle, of all processors
	own        time.Duration
}

// maxStat is more than the system says of ten thousand processors.
const maxStat = 16 << 20

// usedNow reads it; all is 0 where the system does not tell.
func usedNow() usage {
	u := usage{at: time.Now()}
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.own = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	if b, err := foreign.ReadFile("/proc/stat", maxStat); err == nil {
		u.all, u.total = busyIn(string(b))
	}
	return u
}

// tick is the unit of /proc/stat.
const tick = 10 * time.Millisecond

// busyIn reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func busyIn(stat string) (busy, total time.Duration) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0
	}
	for i, s := range f[1:9] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, 0
		}
		total += time.Duration(n) * tick
		if i != 3 && i != 4 {
			busy += time.Duration(n) * tick
		}
	}
	return busy, total
}

// others is the part of all processors that other programs had between two readings.
func others(from, to usage) float64 {
	total := to.total - from.total
	if total <= 0 {
		return 0
	}
	return min(1, max(0, float64((to.all-from.all)-(to.own-from.own))/float64(total)))
}
