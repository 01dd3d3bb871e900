// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Command bandwidth prints how fast threads read, copy or add memory: the bound of whatever is limited by it, such as generation.
//
//	go run ./bench/bandwidth -bytes 60766848 -threads 2 -loop read
//
// The loops are those of gotrain bench step, for the best instruction set of the processor: several streams, with and without prefetching, stores past the
// caches. In each of many slices of time the fastest pass of the fastest loop counts, and the result is the median of the slices, as one JSON line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bandwidth:", err)
		os.Exit(1)
	}
}

// limited is a device that measures what bounds its kernels.
type limited interface {
	Limits(ctx context.Context, s npu.Stream, mem npu.Ptr, threads int, sets ...int64) (npu.Limits, error)
}

// loops are the rates by name.
var loops = map[string]func(r npu.Rates) float64{
	"read": func(r npu.Rates) float64 { return r.Read },
	"copy": func(r npu.Rates) float64 { return r.Copy },
	"add":  func(r npu.Rates) float64 { return r.Add },
}

// result is the line that is printed.
type result struct {
	Peer    string  `json:"peer"` // the loop
	Bytes   int64   `json:"bytes"`
	Threads int     `json:"threads"`
	GBs     float64 `json:"gb_s"` // bytes read and written
}

func run(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bandwidth", flag.ContinueOnError)
	bytes := fs.Int64("bytes", 256<<20, "memory that is used again and again, all arrays together")
	threads := fs.Int("threads", 1, "threads")
	seconds := fs.Float64("seconds", 1, "time")
	loop := fs.String("loop", "read", "read, copy (one half to the other) or add (one half to the other, in place)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *bytes < 4096 || *threads < 1 || !(*seconds > 0) {
		return errors.New("-bytes must be at least 4096, -threads at least 1, -seconds more than 0")
	}
	get := loops[*loop]
	if get == nil {
		return fmt.Errorf("-loop %s: one of %s", *loop, strings.Join(slices.Sorted(maps.Keys(loops)), ", "))
	}
	dev, err := npu.Open("cpu", npu.Options{Threads: *threads, Extra: map[string]string{"onednn": "off"}})
	if err != nil {
		return err
	}
	defer dev.Close()
	s, err := dev.NewStream("bandwidth")
	if err != nil {
		return err
	}
	mem, err := dev.Alloc(*bytes + 4096)
	if err != nil {
		return err
	}
	defer mem.Free()
	l, ok := dev.(limited)
	if !ok {
		return fmt.Errorf("the device %s does not measure its limits", dev.Info().Name)
	}
	var rates []float64
	for end := time.Now().Add(time.Duration(*seconds * 1e9)); len(rates) == 0 || time.Now().Before(end); {
		limits, err := l.Limits(context.Background(), s, npu.Ptr{Buf: mem}, *threads, *bytes)
		if err != nil {
			return err
		}
		rates = append(rates, get(limits.Rates[0]))
	}
	slices.Sort(rates)
	return errors.Join(s.Close(), json.NewEncoder(out).Encode(result{*loop, *bytes, *threads, rates[len(rates)/2] / 1e9}))
}
