package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is the state of a process at one moment.
type Process struct {
	State  string // R, S, D, T, Z, …
	Parent int
	Group  int
	Start  string // clock ticks from boot to its start; with the PID it identifies the process, because PIDs are reused
}

// Ended reports whether the process has ended and is only a zombie.
func (p Process) Ended() bool { return p.State == "Z" || p.State == "X" }

// Read returns the state of a process.
func Read(pid int) (Process, error) { return read(fmt.Sprintf("/proc/%d/stat", pid)) }

// All returns every process that this process sees.
func All() (list []Process) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		if p, err := read(name); err == nil { // otherwise it has just ended
			list = append(list, p)
		}
	}
	return list
}

func read(name string) (Process, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return Process{}, err
	}
	p, err := parse(string(b))
	if err != nil {
		return Process{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// parse reads a line of /proc/PID/stat. Its second field is the name in parentheses and may contain anything.
func parse(line string) (p Process, err error) {
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(f) < 20 {
		return p, fmt.Errorf("%d fields after the name, want at least 20", len(f))
	}
	p = Process{State: f[0], Start: f[19]}
	if p.Parent, err = strconv.Atoi(f[1]); err != nil {
		return p, err
	}
	p.Group, err = strconv.Atoi(f[2])
	return p, err
}
