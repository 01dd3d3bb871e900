// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestNetworks(t *testing.T) {
	got, err := networks("lo,veth,1gbit,250mbit")
	if err != nil || len(got) != 4 || got[0].namespaced() || !got[1].namespaced() || got[1].rate != 0 || got[2].rate != 125e6 || got[3].rate != 31.25e6 {
		t.Errorf("%+v, %v", got, err)
	}
	if got[0].address(3) != "127.0.0.1" || got[2].address(3) != "10.9.0.4" {
		t.Errorf("addresses %s and %s", got[0].address(3), got[2].address(3))
	}
	for _, list := range []string{"", "eth0", "gbit", "-1gbit", "1tbit", "lo,"} {
		if got, err := networks(list); err == nil {
			t.Errorf("%q is %+v", list, got)
		}
	}
}

// The best time of each size counts, and the ratio is time by time: below 1 is faster.
func TestPrintNet(t *testing.T) {
	best := map[string]map[int]float64{}
	keepBest(best, "gotrain", map[int]float64{4096: 12, 1 << 20: 10000})
	keepBest(best, "gotrain", map[int]float64{4096: 9, 1 << 20: 11000})
	keepBest(best, "mark", map[int]float64{4096: 10})
	var out bytes.Buffer
	n := network{name: "1gbit", rate: 125e6}
	printNet(&out, n, 2, 3, []tcpReducer{{name: "gotrain"}, {name: "mark"}}, best)
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"f32 over 1gbit, 2 ranks gotrain µs mark µs gotrain of bound / mark",
		"4 KiB 9.0 10.0 364.1 % 0.90",
		"1 MiB 10000.0 - 83.9 % -",
	}
	for i, w := range want {
		if i >= len(rows) || rows[i] != w {
			t.Errorf("line %d of\n%s\nwant %s", i, out.String(), w)
		}
	}
	out.Reset()
	printNet(&out, network{name: "lo"}, 4, 1, []tcpReducer{{name: "gotrain"}}, map[string]map[int]float64{})
	if !strings.Contains(out.String(), "no all-reduce over lo of 4 ranks was measured") {
		t.Error(out.String())
	}
	if b := wireBound(1<<20, 4, 125e6); math.Abs(b-12583) > 1 {
		t.Errorf("bound %.0f µs", b)
	}
}

// Codecs are compared with float32 of the same program.
func TestPrintCodecs(t *testing.T) {
	const n = 1 << 20
	best := map[string]map[int]float64{"none": {n: 8800, 4 << 20: 35000}, "f16": {n: 4400}, "int8": {n: 2200}, "mark": {n: 8000}, "mark int8": {n: 2000}}
	var out bytes.Buffer
	printCodecs(&out, network{name: "1gbit"}, 2, 3, best)
	for _, want := range []string{"1 MiB 8800 4400 2.00 - - 2200 4.00 2000 4.00 1.10", "4 MiB 35000 - - - - - - - - -"} {
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, want) {
			t.Errorf("no row %q in\n%s", want, out.String())
		}
	}
}

// One that fails ends the others at once, and is the one that is named.
func TestTogether(t *testing.T) {
	begin := time.Now()
	_, err := together(t.Context(), 3, func(rank int) (env, args []string) {
		if rank == 1 {
			return nil, []string{"sh", "-c", "echo no link >&2; exit 3"}
		}
		return nil, []string{"sleep", "60"}
	})
	if err == nil || !strings.Contains(err.Error(), "rank 1: ") || !strings.Contains(err.Error(), "no link") || time.Since(begin) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	r, err := together(t.Context(), 2, func(rank int) (env, args []string) { return []string{"X=7"}, []string{"sh", "-c", "echo $X"} })
	if err != nil || string(r.stdout) != "7\n7\n" {
		t.Errorf("%q, %v", r.stdout, err)
	}
}

// The namespaces appear and disappear with the script, and what it is told wrongly costs a sentence.
func TestNamespaces(t *testing.T) {
	h := &tcp{harness: &harness{o: options{bench: ".."}}, prefix: "X", worlds: []int{2}}
	if err := h.namespaces(t.Context(), "up"); err == nil || !strings.Contains(err.Error(), "small letters") {
		t.Errorf("prefix X: %v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	h.prefix = "cmptest"
	if err := h.namespaces(t.Context(), "up", "1gbit"); err != nil {
		t.Skipf("this machine makes no network namespaces: %v", err)
	}
	defer h.namespaces(context.Background(), "down")
	if err := h.namespaces(t.Context(), "rate", "none"); err != nil {
		t.Error(err)
	}
	if err := h.namespaces(t.Context(), "up"); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second time: %v", err)
	}
	if err := h.namespaces(context.Background(), "down"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/run/netns/cmptest0"); err == nil {
		t.Error("a namespace is left")
	}
}
