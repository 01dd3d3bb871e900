// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ran is what the system says of a finished program.
type ran struct {
	began     time.Time
	stdout    []byte
	rssMB     float64 // largest process of its tree
	pssMB     float64 // the same, with shared pages divided among the processes that map them
	used      float64 // percent of the machine's CPU time that its tree took
	disturbed float64 // and that others took meanwhile
}

// execute runs a program to its end in a process group of its own, which dies as a whole when ctx ends or the program fails.
func execute(ctx context.Context, env []string, name string, args ...string) (ran, error) {
	cmd := exec.Command(name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(cleanEnv(os.Environ()), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t0, busy0 := time.Now(), busyTime()
	if err := cmd.Start(); err != nil {
		return ran{}, fmt.Errorf("%s: %w", name, err)
	}
	done, over, memory := make(chan error, 1), make(chan struct{}), make(chan float64, 1)
	go func() { done <- cmd.Wait() }()
	go func() { memory <- watchPSS("/proc", cmd.Process.Pid, over) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-done
		err = ctx.Err()
	}
	close(over)
	if err != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return ran{}, fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, tail(errs.String(), 8))
	}
	wall, busy := time.Since(t0), busyTime()-busy0
	r := ran{began: t0, stdout: out.Bytes(), pssMB: <-memory}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.rssMB = float64(u.Maxrss) / 1024
		own := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		percent := 100 / (wall.Seconds() * float64(cpus()))
		r.used, r.disturbed = percent*own.Seconds(), percent*max(0, (busy-own).Seconds())
	}
	return r, nil
}

// limited is execute within -timeout, if there is one. What takes longer is an error that says so, and other contestants have their turns.
func (h *harness) limited(env []string, name string, args ...string) (ran, error) {
	if h.o.timeout <= 0 {
		return execute(h.ctx, env, name, args...)
	}
	ctx, cancel := context.WithTimeout(h.ctx, h.o.timeout)
	defer cancel()
	r, err := execute(ctx, env, name, args...)
	if err != nil && ctx.Err() != nil && h.ctx.Err() == nil {
		err = fmt.Errorf("it took more than %v, which is -timeout", h.o.timeout)
	}
	return r, err
}

// cleanEnv drops what shells export for other machines or other runs and what would put a rank's identity into a peer.
func cleanEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		switch k {
		case "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS", "RANK", "WORLD_SIZE", "LOCAL_RANK":
			return true
		}
		return false
	})
}

// busyTime is the CPU time that all processes of the machine have used; 0 where the system does not tell.
func busyTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(first)
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal
		if i < len(f) {
			n, _ := strconv.ParseInt(f[i], 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// cpus is the number of processors of the machine, which may be more than this process may use.
func cpus() int {
	b, _ := os.ReadFile("/proc/stat")
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "cpu") && !strings.HasPrefix(line, "cpu ") {
			n++
		}
	}
	return max(n, 1)
}

// tail is the last n lines.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
