package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train"
)

// benchFlags are the flags of gotrain bench.
type benchFlags struct {
	kind                comm.Kind
	ranks               int
	low, high, step     byteSize
	factor              int64
	dtype, op           string
	root                int
	repeat, warmup      int
	check               int
	transport, topology string
	iface, compress     string
	streams             int
	asJSON, staged      bool
	timeout             time.Duration
}

// byteSize is a flag for a number of bytes.
type byteSize int64

func (b *byteSize) Set(s string) error {
	n, err := perf.ParseBytes(s)
	*b = byteSize(n)
	return err
}

func (b *byteSize) String() string {
	if *b == 0 {
		return "" // no default to show
	}
	return strings.ReplaceAll(strings.TrimSuffix(perf.FormatBytes(int64(*b)), "iB"), " ", "")
}

func (b *byteSize) Type() string { return "size" }

// benchWords are the values of flags that have few, for completion too.
var benchWords = map[string][]string{
	"transport": {"auto", "shm", "tcp"},
	"topology":  {"auto", "mesh", "tree", "ring"},
	"dtype":     {"f32", "bf16", "f16", "f64", "i32", "i64", "u8", "i8"},
	"op":        {"sum", "max", "min"},
	"compress":  {"none", "f16", "bf16", "int8"},
}

// benchTypes are the names that other programs use.
var benchTypes = map[string]string{
	"fp32": "f32", "float": "f32", "float32": "f32", "fp16": "f16", "half": "f16", "float16": "f16", "bfp16": "bf16", "bfloat16": "bf16",
	"fp64": "f64", "double": "f64", "float64": "f64", "int8": "i8", "uint8": "u8", "int32": "i32", "int64": "i64",
}

// benchSpellings are the long options of hccl_test and nccl-tests.
var benchSpellings = map[string]string{
	"minbytes": "min", "maxbytes": "max", "stepbytes": "step", "stepfactor": "factor", "datatype": "dtype", "iters": "repeat", "warmup-iters": "warmup",
	"npus": "ranks", "redop": "op",
}

func (f *benchFlags) add(c *cobra.Command) {
	f.low, f.high = 4<<10, 256<<20
	fl := c.Flags()
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.ReplaceAll(name, "_", "-")
		if ours := benchSpellings[name]; ours != "" {
			name = ours
		}
		return pflag.NormalizedName(name)
	})
	fl.SortFlags = false
	fl.IntVarP(&f.ranks, "ranks", "p", 0, "processes to start on this machine (default 2)")
	fl.VarP(&f.low, "min", "b", "smallest `size`: bytes, or 8K, 64M, 1G")
	fl.VarP(&f.high, "max", "e", "largest `size`")
	fl.Int64VarP(&f.factor, "factor", "f", 4, "each size is this many times the one before")
	fl.VarP(&f.step, "step", "i", "each size is this `size` more than the one before, instead of --factor")
	fl.StringVarP(&f.dtype, "dtype", "d", "f32", "type of an element: "+strings.Join(benchWords["dtype"], ", "))
	switch f.kind {
	case comm.AllReduce, comm.ReduceScatter, comm.Reduce:
		fl.StringVarP(&f.op, "op", "o", "sum", "reduction: "+strings.Join(benchWords["op"], ", "))
	}
	switch f.kind {
	case comm.Broadcast, comm.Reduce:
		fl.IntVarP(&f.root, "root", "r", 0, "`rank` that has the data, or gets them")
	}
	fl.IntVarP(&f.repeat, "repeat", "n", 0, "measured calls of each size; 0: 200 below 1 MiB, 20 below 64 MiB, 5 above")
	fl.IntVarP(&f.warmup, "warmup", "w", 2, "calls of each size before them")
	fl.IntVarP(&f.check, "check", "c", 1, "compare every element after every call; 0: do not")
	fl.StringVar(&f.transport, "transport", "auto", "auto: shared memory on one machine, TCP between machines; shm; tcp: TCP also on one machine")
	fl.StringVar(&f.topology, "topology", "auto", "algorithm between machines: auto, mesh, tree, ring")
	fl.StringVar(&f.iface, "interface", "", "network interface (eth1) or `network` (10.0.0.0/8) between machines")
	fl.IntVar(&f.streams, "streams", 1, "TCP connections between two ranks")
	if f.kind == comm.AllReduce {
		fl.StringVar(&f.compress, "compress", "none", "type in which float32 travels: none, f16, bf16, int8")
	}
	fl.BoolVar(&f.staged, "staged", false, "use ordinary memory instead of the transport's own")
	fl.DurationVar(&f.timeout, "timeout", time.Minute, "how long a rank may show no sign of life")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object for each size; everything else goes to standard error")
	for name, words := range benchWords {
		if fl.Lookup(name) == nil {
			continue
		}
		err := c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return words, cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // a programmer's mistake
		}
	}
}

// compresses reports whether sums travel encoded.
func (f *benchFlags) compresses() bool { return f.compress != "" && f.compress != "none" }

// ranksOr returns the number of ranks to start.
func (f *benchFlags) ranksOr(otherwise int) int {
	if f.ranks == 0 {
		return otherwise
	}
	return f.ranks
}

// config checks the flags, all at once.
func (f *benchFlags) config() (cfg perf.Config, err error) {
	var errs []error
	bad := func(flag, value string) {
		errs = append(errs, fmt.Errorf("--%s %s: one of %s", flag, value, strings.Join(benchWords[flag], ", ")))
	}
	dtype := f.dtype
	if ours := benchTypes[strings.ToLower(dtype)]; ours != "" {
		dtype = ours
	}
	if cfg.DType, err = npu.ParseDType(dtype); err != nil {
		bad("dtype", f.dtype)
	}
	if f.op != "" {
		switch i := slices.Index(benchWords["op"], f.op); {
		case f.op == "prod":
			errs = append(errs, errors.New("--op prod: gotrain has no products; training does not need them\nhint: --op sum"))
		case i < 0:
			bad("op", f.op)
		default:
			cfg.Op = comm.Op(i)
		}
	}
	for _, w := range []struct{ flag, value string }{{"transport", f.transport}, {"topology", f.topology}, {"compress", f.compress}} {
		if w.value != "" && !slices.Contains(benchWords[w.flag], w.value) {
			bad(w.flag, w.value)
		}
	}
	if cfg.Sizes, err = perf.Sizes(int64(f.low), int64(f.high), perf.Growth{Factor: f.factor, Step: int64(f.step)}); err != nil {
		errs = append(errs, err)
	}
	for _, n := range []struct {
		flag       string
		value, low int
	}{{"ranks", f.ranks, 0}, {"root", f.root, 0}, {"repeat", f.repeat, 0}, {"warmup", f.warmup, 0}, {"check", f.check, 0}, {"streams", f.streams, 1}} {
		if n.value < n.low {
			errs = append(errs, fmt.Errorf("--%s %d: at least %d", n.flag, n.value, n.low))
		}
	}
	if f.timeout < 0 {
		errs = append(errs, fmt.Errorf("--timeout %v: not below 0", f.timeout))
	}
	if f.compresses() && (cfg.DType != npu.F32 || cfg.Op != comm.Sum) {
		errs = append(errs, fmt.Errorf("--compress %s is for sums of f32", f.compress))
	}
	cfg.Kind, cfg.Root, cfg.Repeat, cfg.Warmup = f.kind, f.root, f.repeat, f.warmup
	if cfg.Warmup == 0 {
		cfg.Warmup = -1 // none, not the default
	}
	cfg.Heap, cfg.NoCheck, cfg.Timeout = f.staged, f.check == 0, f.timeout
	return cfg, errors.Join(errs...)
}

// links is how the ranks meet.
func (f *benchFlags) links() train.Links {
	return train.Links{Transport: f.transport, Topology: f.topology, Interface: f.iface, Streams: f.streams}
}
