package launch

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Placement describes the processors that a rank computes on.
type Placement struct {
	// CPUs are the processors that the process is bound to; nil if it shares all of them with the other local ranks.
	CPUs []int
	// Threads is the number of compute threads to start, at least 1: one per physical core of its share, but no more than the CPU quota of
	// the process's control groups allows.
	Threads int
	// Why explains Threads if it is not the number of cores, for the log; otherwise "".
	Why string
}

// Place determines the placement of a rank: from the supervisor (GOTRAIN_CPUS, GOTRAIN_THREADS), from the set that another
// launcher bound the process to, or as an equal share of the cores.
func Place(id Identity, lookup Lookup) (Placement, error) {
	r := &reader{lookup: lookup, source: SourceGotrain}
	var p Placement
	if v := r.str("GOTRAIN_CPUS"); v != "" {
		cpus, err := ParseCPUs(v)
		if err != nil {
			r.fail("GOTRAIN_CPUS", err.Error(), "use a list such as 0-3,8")
		}
		p.CPUs = cpus
	}
	if r.has("GOTRAIN_THREADS") {
		p.Threads = r.needSize("GOTRAIN_THREADS")
	}
	if r.err != nil {
		return Placement{}, r.err
	}
	mine := allowed(os.Getpid())
	if p.CPUs == nil && len(mine) > 0 && len(mine) < len(allowed(os.Getppid())) {
		p.CPUs = mine // mpirun and srun bind each rank to its own cores
	}
	if p.Threads == 0 {
		if p.CPUs != nil {
			p.Threads = len(cores(p.CPUs))
		} else {
			p.Threads = len(cores(mine)) / max(1, id.LocalWorld)
		}
		p.Threads = max(1, min(p.Threads, runtime.GOMAXPROCS(0)))
		p.limit(id.LocalWorld, machine)
	}
	return p, nil
}

// Share assigns processors to n ranks: whole physical cores, neighbours together. With fewer cores than ranks, no rank
// is bound and each gets one thread.
func Share(cpus []int, n int) []Placement {
	out := make([]Placement, n)
	groups := cores(cpus)
	if len(groups) == 1 && len(cpus) >= n {
		// One core with several hardware threads: one per rank is better than all shared by all.
		groups = nil
		for _, c := range cpus {
			groups = append(groups, []int{c})
		}
	}
	for i := range out {
		if len(groups) < n {
			out[i].Threads = 1
			continue
		}
		// The first ranks get one extra core if the division leaves a remainder.
		each, rest := len(groups)/n, len(groups)%n
		from := i*each + min(i, rest)
		to := from + each
		if i < rest {
			to++
		}
		for _, g := range groups[from:to] {
			out[i].CPUs = append(out[i].CPUs, g...)
		}
		slices.Sort(out[i].CPUs)
		// All ranks wait for the slowest, so an extra core only helps loading data.
		out[i].Threads = each
	}
	return out
}

// cores groups processors by physical core, in the order of package and core, as the system describes them.
func cores(cpus []int) [][]int {
	type key struct{ pkg, core int }
	byCore := map[key][]int{}
	var order []key
	for _, c := range cpus {
		k := key{topology(c, "physical_package_id", 0), topology(c, "core_id", c)}
		if byCore[k] == nil {
			order = append(order, k)
		}
		byCore[k] = append(byCore[k], c)
	}
	slices.SortFunc(order, func(a, b key) int {
		if a.pkg != b.pkg {
			return a.pkg - b.pkg
		}
		return a.core - b.core
	})
	out := make([][]int, len(order))
	for i, k := range order {
		out[i] = byCore[k]
	}
	return out
}

// topology reads a property of a processor, or returns def if the system does not provide it.
func topology(cpu int, name string, def int) int {
	b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name))
	if err != nil {
		return def
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return def
	}
	return n
}

// allowed lists the processors that a process may run on; nil if unknown.
func allowed(pid int) []int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				if cpus, err := ParseCPUs(strings.TrimSpace(v)); err == nil {
					return cpus
				}
			}
		}
	}
	if pid != os.Getpid() {
		return nil
	}
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

// ParseCPUs parses a list of processors such as "0-3,8"; the result is sorted without duplicates.
func ParseCPUs(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(lo)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(hi)
		}
		if err != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("%q is not a list of processors", s)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// FormatCPUs is the inverse of ParseCPUs.
func FormatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Cores returns the number of physical cores that this process may use.
func Cores() int { return len(cores(allowed(os.Getpid()))) }
