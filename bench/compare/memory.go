// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pssEvery is the shortest time between two looks at the memory of a run. Looking takes time too, a walk over all page tables, so it is at most a hundredth of
// a core's time.
const pssEvery = 250 * time.Millisecond

// watchPSS looks at the memory of a process and all that it started until done is closed, and returns the most that one of them had, in MB, with pages that
// several processes map divided among them (PSS). A peak between two looks is missed; the ranks of all contestants keep what they have once taken.
// 0: the system does not tell.
func watchPSS(proc string, root int, done <-chan struct{}) float64 {
	most, pause := 0.0, pssEvery
	for {
		select {
		case <-done:
			return most
		case <-time.After(pause):
		}
		began := time.Now()
		for _, pid := range tree(proc, root) {
			most = max(most, pss(proc, pid))
		}
		pause = max(pssEvery, 100*time.Since(began))
	}
}

// pss is the proportional set size of a process in MB, 0 where it has ended.
func pss(proc string, pid int) float64 {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}

// tree lists a process and its descendants.
func tree(proc string, root int) []int {
	stats, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	kids := map[int][]int{}
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // the name before it may have blanks
		if len(f) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(f[1]))
		kids[parent] = append(kids[parent], pid)
	}
	all := []int{root}
	for i := 0; i < len(all); i++ {
		all = append(all, kids[all[i]]...)
	}
	return all
}
