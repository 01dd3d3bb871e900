// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gotrain/gotrain/bench/shapes"
)

// options are the flags.
type options struct {
	what      string
	dtypes    string
	ranks     string
	batch     string
	shapes    string
	sizes     string // of -what vit
	seq       string
	tokens    int
	memory    int
	warm      int
	steps     int
	rounds    int
	disturbed float64
	timeout   time.Duration
	gotrain   string
	bench     string

	// of -what net
	nets       string
	worlds     string
	namespaces string
	markTCP    string
	maxBytes   int

	loadSeconds float64 // of -what data
	loads       string  // what it loads

	// of -what predict
	pictures int
	depths   string
	loaders  int

	// of -what codec
	codecFile    string
	codecRecipes string
	codecSeeds   int
	codecSteps   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(progress)
	fs.StringVar(&o.what, "what", "step,allreduce",
		"what to measure, with commas: step, vit, allreduce, net, net-codec, hosts, llama, generate, codec, encode, data, predict")
	fs.StringVar(&o.dtypes, "dtype", "f32,bf16", "compute types of the steps")
	fs.StringVar(&o.ranks, "ranks", "2x1,1x2", "ranks x threads of the steps; generate takes the threads; the all-reduce takes 2 and 4 ranks")
	fs.StringVar(&o.batch, "batch", "", "images or sequences a rank, texts of generate (default 16 for step and vit, 4,8,16 for llama, 1,4 for generate)")
	fs.StringVar(&o.shapes, "shape", "stories15M", "models of llama and generate: "+strings.Join(shapes.Names(), ", "))
	fs.StringVar(&o.sizes, "size", "deit-s", "vision transformers of vit: deit-ti, deit-s, deit-b, vit-ti, vit-s, vit-b, vit-l")
	fs.StringVar(&o.seq, "seq", "256", "tokens of a sequence of llama")
	fs.IntVar(&o.memory, "memory", 0, "train.memory_limit_mb of gotrain's ranks in llama; 0: no limit")
	fs.IntVar(&o.tokens, "tokens", 200, "tokens that generate writes")
	fs.IntVar(&o.warm, "warm", 4, "steps before measuring")
	fs.IntVar(&o.steps, "steps", 8, "steps measured in a run")
	fs.IntVar(&o.rounds, "rounds", 3, "runs of each contestant, in turn")
	fs.Float64Var(&o.disturbed, "disturbed", 5, "percent of CPU time used by others that spoils a run")
	fs.DurationVar(&o.timeout, "timeout", 10*time.Minute, "limit of a single run")
	fs.StringVar(
		&o.gotrain,
		"gotrain",
		"",
		"command line of gotrain with places {world} {threads} {batch} {dtype} {steps} {dir}; it leaves metrics.jsonl in {dir}, or prints it; empty: "+
			"build it from this checkout",
	)
	fs.StringVar(&o.bench, "bench", "bench", "the folder bench of the project, with the peers' programs")
	fs.StringVar(&o.nets, "net", "lo", "networks of net: lo; veth, between network namespaces (root only); a rate such as 1gbit, the same with that limit")
	fs.StringVar(&o.worlds, "world", "2,4", "ranks of net")
	fs.StringVar(&o.namespaces, "namespaces", "hn", "prefix of the names of the namespaces that net makes")
	fs.StringVar(&o.markTCP, "mark-tcp", "", "the bare program of net, with options of its own; empty: $BENCH_MARK_TCP")
	fs.IntVar(&o.maxBytes, "max", 256<<20, "largest size of net in bytes; on a network with a rate at most 64 MiB")
	fs.StringVar(&o.loads, "load", strings.Join(loads, ","), "what data loads")
	fs.Float64Var(&o.loadSeconds, "load-seconds", 2, "how long a contestant of data loads samples")
	fs.IntVar(&o.pictures, "pictures", 1000, "photographs that predict classifies")
	fs.StringVar(&o.depths, "depth", "50", "ResNets of predict: 18, 34, 50, 101, 152")
	fs.IntVar(&o.loaders, "loaders", 2, "processes in which PyTorch loads pictures for predict")
	fs.StringVar(&o.codecFile, "codec-file", "codec.json", "results of codec; a run that is in it is not repeated")
	fs.StringVar(&o.codecRecipes, "codec-recipes", "llama-tiny,quickstart", "models of codec")
	fs.IntVar(&o.codecSeeds, "codec-seeds", 3, "seeds of codec: 1 to this number")
	fs.IntVar(&o.codecSteps, "codec-steps", 1000, "steps of a run of codec")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if _, err := o.settings(nil, []int{1}, nil); err != nil { // before anything runs
		return err
	}
	var err error
	fmt.Fprintln(out, machine())
	h := &harness{ctx: ctx, o: o, out: out, progress: progress}
	if h.scratch, err = os.MkdirTemp("", "gotrain-compare-"); err != nil {
		return err
	}
	defer os.RemoveAll(h.scratch)
	for _, what := range strings.Split(o.what, ",") {
		switch what {
		case "step":
			err = h.steps()
		case "vit":
			err = h.vit()
		case "allreduce":
			err = h.allreduce([]int{2, 4})
		case "net":
			err = h.net(false)
		case "net-codec":
			err = h.net(true)
		case "hosts":
			err = h.hosts()
		case "llama":
			err = h.llama()
		case "generate":
			err = h.generate()
		case "codec":
			err = h.codec()
		case "encode":
			err = h.encode()
		case "data":
			err = h.data()
		case "predict":
			err = h.predict()
		default:
			err = fmt.Errorf("-what %q: only step, vit, allreduce, net, net-codec, hosts, llama, generate, codec, encode, data and predict can be measured", what)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// machine says where the numbers come from.
func machine() string {
	model := "unknown CPU"
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			model = strings.TrimSpace(v)
			break
		}
	}
	var isa []string
	for _, f := range []string{"avx2", "avx512f", "avx512_bf16", "amx_bf16"} {
		if strings.Contains(string(b), " "+f+" ") {
			isa = append(isa, f)
		}
	}
	return fmt.Sprintf("machine: %s, %d CPUs, %s/%s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, strings.Join(isa, " "))
}

// peer is the path of a program in bench/peer.
func (h *harness) peer(name string) string { return filepath.Join(h.o.bench, "peer", name) }
