// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

// Command kernels times the kernels of a training step of a Llama or of ResNet50, each alone, with nothing around them: no data, no communication, no
// trainer. Their sum is the step time of a trainer without overhead.
//
//	go run ./bench/kernels -shape stories15M -batch 8 -seq 256 -dtype bf16 -threads 1
//	go run ./bench/kernels -shape d512 -by-kind       # and where the time goes
//	go run ./bench/kernels -shape resnet50 -batch 16 -conv-algorithm direct
//	GOTRAIN_MAX_ISA=avx2 go run ./bench/kernels -shape resnet50 -batch 16 -dtype bf16    # as on a lesser processor
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/gotrain/gotrain/npu"
	_ "github.com/gotrain/gotrain/npu/cpu"
	"github.com/gotrain/gotrain/train"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	fs := flag.NewFlagSet("kernels", flag.ContinueOnError)
	fs.StringVar(&o.shape, "shape", "stories15M", "the model: resnet50, or a Llama of bench/shapes")
	fs.IntVar(&o.batch, "batch", 8, "sequences, or pictures")
	fs.IntVar(&o.seq, "seq", 256, "tokens of a sequence (Llamas)")
	dtype := fs.String("dtype", "f32", "compute type: f32 or bf16")
	fs.StringVar(&o.device, "device", "cpu", "family of the device")
	fs.IntVar(&o.threads, "threads", 1, "compute threads")
	fs.StringVar(&o.algorithm, "conv-algorithm", train.AutoConv, "algorithm of convolutions: auto (as a run has measured them to be fastest), direct or winograd")
	fs.StringVar(&o.products, "products", "", "how products of bf16 are computed: the cpu device's option bf16 (auto, native or f32)")
	steps := fs.Int("steps", 5, "steps measured")
	byKind := fs.Bool("by-kind", false, "list the kinds of kernels of the fastest step")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	if o.dtype, err = npu.ParseDType(*dtype); err != nil {
		return err
	}
	if o.batch < 1 || o.threads < 1 || *steps < 1 {
		return errors.New("-batch, -threads and -steps must be at least 1")
	}
	if all := []string{train.AutoConv, train.DirectConv, train.WinogradConv}; !slices.Contains(all, o.algorithm) {
		return fmt.Errorf("unknown algorithm of convolutions %q", o.algorithm)
	}
	m, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer m.close()
	if _, err := m.step(ctx); err != nil { // the first one touches all memory
		return err
	}
	var sums []time.Duration
	var best map[string]time.Duration
	for range *steps {
		kinds, err := m.step(ctx)
		if err != nil {
			return err
		}
		sum := total(kinds)
		if sums = append(sums, sum); sum == slices.Min(sums) {
			best = kinds
		}
	}
	slices.Sort(sums)
	median, items := sums[len(sums)/2], float64(o.items())
	what := fmt.Sprintf("llama %s, %d threads, batch %d of %d", o.shape, o.threads, o.batch, o.seq)
	if o.shape == resNet50 {
		what = fmt.Sprintf("%s, %d threads, batch %d", o.shape, o.threads, o.batch)
	}
	fmt.Fprintf(out, "kernels of %s, %v: %.1f %s (best %.1f), step %.2f ms\n",
		what, o.dtype, items/median.Seconds(), o.unit(), items/sums[0].Seconds(), median.Seconds()*1e3)
	if m.said != "" {
		fmt.Fprintf(out, "  convolutions: %s\n", m.said)
	}
	if *byKind {
		names := slices.SortedFunc(maps.Keys(best), func(a, b string) int { return cmp.Or(-cmp.Compare(best[a], best[b]), cmp.Compare(a, b)) })
		for _, n := range names {
			fmt.Fprintf(out, "  %-48s %9.2f ms %5.1f %%\n", n, best[n].Seconds()*1e3, 100*best[n].Seconds()/sums[0].Seconds())
		}
	}
	return nil
}

func total(kinds map[string]time.Duration) (sum time.Duration) {
	for _, d := range kinds {
		sum += d
	}
	return sum
}
