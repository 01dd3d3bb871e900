package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gotrain/gotrain/graph/roofline"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/foreign"
)

// envMaxISA limits the instruction sets of the host device (docs/environment.md).
const envMaxISA = "GOTRAIN_MAX_ISA"

func maxISA() string { return os.Getenv(envMaxISA) }

// maxCPUInfo is more than the system says of a thousand processors.
const maxCPUInfo = 16 << 20

// processorName is what the system calls the processor, with family and model, which virtual machines keep when they hide the name.
func processorName() string {
	b, err := foreign.ReadFile("/proc/cpuinfo", maxCPUInfo)
	if err != nil {
		return "unknown"
	}
	return processorIn(b)
}

func processorIn(cpuinfo []byte) string {
	found := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(cpuinfo)); s.Scan(); {
		key, value, ok := strings.Cut(s.Text(), ":")
		if !ok && len(found) > 0 {
			break // the next processor
		}
		found[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	switch name := found["model name"]; {
	case name != "" && found["cpu family"] != "":
		return fmt.Sprintf("%s (family %s, model %s)", name, found["cpu family"], found["model"])
	case name != "":
		return name
	case found["CPU part"] != "":
		return fmt.Sprintf("implementer %s, part %s", found["CPU implementer"], found["CPU part"])
	}
	return "unknown"
}

// printStep prints the report for people.
func (a *app) printStep(s *stepReport, all bool) error {
	var b bytes.Buffer
	plural := ""
	if s.Threads != 1 {
		plural = "s"
	}
	fmt.Fprintf(&b, "# gotrain %s bench step %s, %s, batch %d × %d, %s of %d thread%s\n", s.Version, s.Recipe, s.DType, s.Batch, s.Accumulate,
		amounts(s.Ranks, "rank"), s.Threads, plural)
	fmt.Fprintf(&b, "# %s, %s\n#\n", s.Processor, s.Device)
	s.printLimits(&b)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind\tkernels\tshare\tms\tGFLOP\tGFLOP/s\tMB\tGB/s\tbound ms\tof it\tbound by\twhy not all of it")
	for _, k := range s.Kinds {
		fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%s\t%s\n", k.Kind, k.Count, 100*k.Share, numbers(k.Took, k.FLOP, k.Bytes, k.Bound, k.By), k.Reason)
	}
	if all {
		fmt.Fprintln(w, "\nkernel\tkernels\tshare\tms\tGFLOP\tGFLOP/s\tMB\tGB/s\tbound ms\tof it\tbound by\timplementation, shape")
		for _, k := range s.Kernels {
			fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%s\t%s  %s\n", k.Kind, k.Count, 100*k.Took.Seconds()/s.Took.Seconds(),
				numbers(k.Took, k.FLOP, k.Bytes(), k.Bound, k.By), k.Impl, k.Shape)
		}
	}
	w.Flush()
	fmt.Fprintf(&b, "# these kernels took %s ms", ms(s.Took))
	if s.Bound > 0 {
		fmt.Fprintf(&b, "; at their bounds they would take %s ms (%.0f %%)", ms(s.Bound), 100*s.Bound.Seconds()/s.Took.Seconds())
	}
	fmt.Fprintf(&b, "\n# median of %s: %s ms, of which kernels %.0f %%\n", amounts(s.Steps, "step"), ms(time.Duration(s.Step*1e9)), 100*s.Part)
	if s.Others > disturbed && s.Ranks == 1 {
		fmt.Fprintf(&b, "# disturbed: other programs used %.0f %% of the processors during steps, so kernels are slower than they could be\n", 100*s.Others)
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// disturbed is the part of the processors above which other programs are worth a word.
const disturbed = 0.05

// numbers are the columns that kinds and kernels have in common.
func numbers(took time.Duration, flop, bytes int64, bound time.Duration, by roofline.Bound) string {
	sec := max(took.Seconds(), 1e-9)
	of, limit, what := "-", "-", "-"
	if bound > 0 {
		of, limit, what = fmt.Sprintf("%.0f %%", 100*bound.Seconds()/sec), ms(bound), string(by)
	}
	return fmt.Sprintf("%s\t%.2f\t%.1f\t%.1f\t%.1f\t%s\t%s\t%s", ms(took), float64(flop)/1e9, float64(flop)/1e9/sec, float64(bytes)/1e6, float64(bytes)/1e9/sec,
		limit, of, what)
}

// ms prints milliseconds with three digits that mean something.
func ms(d time.Duration) string {
	v := float64(d) / 1e6
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// printLimits prints what was measured of the machine: peaks, and rates of a set that fits in the first cache of a core, in caches further away, and in memory.
func (s *stepReport) printLimits(out io.Writer) {
	if len(s.Limits.Rates) == 0 {
		fmt.Fprintf(out, "# this device does not measure its limits, so there are no bounds\n#\n")
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "# measured limits\t1 thread")
	both := s.Limits.Threads > 1
	if both {
		fmt.Fprintf(w, "\t%d threads", s.Limits.Threads)
	}
	fmt.Fprintln(w)
	row := func(what string, get func(l npu.Limits) string) {
		fmt.Fprintf(w, "# %s\t%s", what, get(s.One))
		if both {
			fmt.Fprintf(w, "\t%s", get(s.Limits))
		}
		fmt.Fprintln(w)
	}
	for i, p := range s.Limits.Peaks {
		row(fmt.Sprintf("%s multiply-adds, %s", p.Type, p.ISA), func(l npu.Limits) string {
			if i >= len(l.Peaks) {
				return "-"
			}
			return fmt.Sprintf("%.0f GFLOP/s", l.Peaks[i].FLOP/1e9)
		})
	}
	for i, r := range s.Limits.Rates {
		if !slices.Contains([]int64{32 << 10, 1 << 20, 8 << 20, 256 << 20}, r.Bytes) {
			continue
		}
		row("read, copy, add in "+amount.Bytes(r.Bytes), func(l npu.Limits) string {
			return fmt.Sprintf("%.0f, %.0f, %.0f GB/s", l.Rates[i].Read/1e9, l.Rates[i].Copy/1e9, l.Rates[i].Add/1e9)
		})
	}
	if both {
		row("to start all threads", func(l npu.Limits) string { return l.Region.Round(10 * time.Nanosecond).String() })
	}
	w.Flush()
	fmt.Fprintln(out, "#")
}
