// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// A process counts with its descendants, not with strangers; shared pages count in parts.
func TestMemoryOfATree(t *testing.T) {
	proc := t.TempDir()
	for _, p := range []struct {
		pid, parent, pss int
		name             string
	}{{10, 1, 2048, "supervisor"}, {11, 10, 4096, "rank ) 0"}, {12, 11, 8192, "helper"}, {13, 1, 1 << 20, "a stranger"}} {
		dir := filepath.Join(proc, strconv.Itoa(p.pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		rollup := fmt.Sprintf("00400000-7fff00000000 ---p 00000000 00:00 0 [rollup]\nRss:  %d kB\nPss:   %d kB\nPss_Anon:  1 kB\n", 2*p.pss, p.pss)
		for file, text := range map[string]string{"stat": fmt.Sprintf("%d (%s) S %d 1 1 0", p.pid, p.name, p.parent), "smaps_rollup": rollup} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := tree(proc, 10); !slices.Equal(got, []int{10, 11, 12}) {
		t.Errorf("got the processes %v", got)
	}
	if got := pss(proc, 12); got != 8 {
		t.Errorf("got %g MB of 8", got)
	}
	if got := pss(proc, 99); got != 0 {
		t.Errorf("a process that does not exist has %g MB", got)
	}
	done := make(chan struct{})
	close(done)
	watchPSS(proc, 10, done) // ends
	if os.Getpid() > 1 && pss("/proc", os.Getpid()) == 0 {
		if _, err := os.Stat("/proc/self/smaps_rollup"); err == nil {
			t.Error("this process has no memory")
		}
	}
}
