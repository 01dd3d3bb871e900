package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/ddp/comm/perf"
	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/npu"
)

// Every collective is measured by processes that the command starts: JSON on standard output, one line for each size, and nothing else there.
func TestBenchJSON(t *testing.T) {
	for _, b := range benched {
		cmd := program(t, "bench", b.kind.String(), "--ranks", "2", "--min", "4K", "--max", "64K", "-n", "3", "--json")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", b.kind, err, out, errs.String())
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if len(lines) != 3 {
			t.Errorf("%v: %d lines\n%s", b.kind, len(lines), out)
		}
		for i, line := range lines {
			var l benchLine
			d := json.NewDecoder(strings.NewReader(line))
			d.DisallowUnknownFields()
			if err := d.Decode(&l); err != nil || l.Peer != "gotrain" || l.Op != b.kind.String() || l.World != 2 || l.Bytes != 4096<<(2*i) || l.Transport != "shm" ||
				l.US <= 0 || l.GBs <= 0 || l.MinUS > l.US || l.US > l.P99US || l.Wrong == nil || *l.Wrong != 0 {
				t.Errorf("%v: %s (%v)", b.kind, line, err)
			}
		}
		for _, want := range []string{"# gotrain ", "2 ranks on 1 host, transport shm", ": ranks 0-1\n", "% of memory bandwidth (2 ranks copy "} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%v: no %q in\n%s", b.kind, want, errs.String())
			}
		}
	}
}

// Over TCP on one machine the ranks measure their link when they meet, and the last line compares with that.
func TestBenchTCP(t *testing.T) {
	for _, args := range []string{"allreduce --ranks 2", "allgather --ranks 3 --topology ring", "broadcast --ranks 2 --root 1 --staged"} {
		cmd := program(t, append(append([]string{"bench"}, strings.Fields(args)...), "--transport", "tcp", "--min", "4K", "--max", "256K", "-n", "3")...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil && strings.Contains(errs.String(), "needs Linux") {
			t.Skip(errs.String())
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", args, err, out, errs.String())
		}
		for _, want := range []string{"transport tcp\n", " at 127.0.0.1:", "bit/s, ", ", measured when the ranks met\n#   ", " % of the ", "that the link measured"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in\n%s", args, want, out)
			}
		}
		if n := strings.Count(string(out), "\n  "); n < 4 {
			t.Errorf("%s: %d rows\n%s", args, n, out)
		}
	}
}

// The options of hccl_test give the same table as ours.
func TestBenchSpellings(t *testing.T) {
	for _, args := range []string{
		"allreduce -b 8K -e 32K -f 2 -d fp32 -o sum -n 2 -w 1 -c 1 -p 1",
		"hccl_allreduce_test --minbytes 8K --maxbytes 32K --stepfactor 2 --datatype float --op sum --iters 2 --warmup_iters 1 --check 1 --npus 1",
		"all_reduce_perf --min 8192 --max 32KiB --factor 2 --dtype f32 --repeat 2 --warmup 1 --ranks 1",
	} {
		out, errs, code := cli(t, append([]string{"bench"}, strings.Fields(args)...)...)
		var rows []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 10 && f[0] != "#" && !strings.HasPrefix(f[0], "#") {
				rows = append(rows, strings.Join([]string{f[0], f[1], f[2], f[3], f[7]}, " "))
			}
		}
		if got := strings.Join(rows, ","); code != 0 || got != "8192 2048 f32 sum 0,16384 4096 f32 sum 0,32768 8192 f32 sum 0" {
			t.Errorf("%s: code %d, %s\n%s%s", args, code, got, out, errs)
		}
		if !strings.Contains(out, "one rank exchanges nothing") {
			t.Errorf("%s: no last line in\n%s", args, out)
		}
	}
	if _, errs, code := cli(t, "hccl_allreduce_test", "-b", "8K"); code != launch.ExitUsage || !strings.Contains(errs, "gotrain bench allreduce") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// What is wrong with the flags is said at once, with the exit code of a wrong command line.
func TestBenchRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                    "",
		"bogus":                               `unknown benchmark "bogus"`,
		"allreduce -b 12X":                    `"12X" is no size`,
		"allreduce --min 8K --max 4K":         "below the smallest",
		"allreduce --dtype q --transport mpi": "--dtype q: one of f32, bf16, f16, f64, i32, i64, u8, i8\n--transport mpi: one of auto, shm, tcp",
		"allreduce -o prod":                   "no products",
		"allreduce -o avg":                    "--op avg: one of sum, max, min",
		"allgather -o sum":                    "unknown shorthand flag: 'o'",
		"broadcast -r 2":                      "--root 2: there are 2 ranks, from 0",
		"reduce --ranks -1":                   "--ranks -1: at least 0",
		"allreduce -n -1 --topology star":     "--topology star: one of auto, mesh, tree, ring",
		"allreduce positional":                `unknown command "positional"`,
	} {
		_, errs, code := cli(t, append([]string{"bench"}, strings.Fields(args)...)...)
		if want == "" && code == 0 {
			continue
		}
		if code != launch.ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("bench %s: code %d, %s", args, code, errs)
		}
	}
}

// A signal ends all ranks together: what is known is printed, and the exit code says that nothing can be resumed.
func TestBenchStops(t *testing.T) {
	cmd := program(t, "bench", "allreduce", "--ranks", "2", "--min", "64K", "--max", "64K", "-n", "1000000000")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var head strings.Builder
	one := make([]byte, 1)
	for !strings.Contains(head.String(), "GB/s      GB/s") { // the ranks have met
		if _, err := out.Read(one); err != nil {
			t.Fatalf("%v\n%s\n%s", err, head.String(), errs.String())
		}
		head.Write(one)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != launch.ExitNotResumable || strings.Contains(errs.String(), "failed first") {
		t.Errorf("%v\n%s%s\n%s", err, head.String(), rest, errs.String())
	}
}

// A reader that goes away ends the measurement: a result that cannot be written is not awaited.
func TestBenchWithoutAReader(t *testing.T) {
	for _, ranks := range []string{"1", "2"} {
		cmd := program(t, "bench", "allreduce", "--ranks", ranks, "--min", "4K", "--max", "16K", "-n", "1000")
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		err = cmd.Run()
		full.Close()
		if cmd.ProcessState.ExitCode() != launch.ExitStorage || !strings.Contains(errs.String(), "the result cannot be written") {
			t.Errorf("%s ranks: %v\n%s", ranks, err, errs.String())
		}
	}
}

// broken is a transport that gets an element of one call wrong.
type broken struct {
	comm.Communicator
	calls atomic.Int32
}

func (b *broken) AllReduce(ctx context.Context, m comm.Mem, op comm.Op) (comm.Handle, error) {
	h, err := b.Communicator.AllReduce(ctx, m, op)
	if err == nil && m.DType == npu.F32 && b.calls.Add(1) == 2 {
		if err = h.Wait(ctx); err == nil {
			comm.View[float32](m)[17]++
		}
	}
	return h, err
}

// A wrong element is named by the rank that has it, counted in the table, and the exit code of every rank is 70.
func TestBenchWrong(t *testing.T) {
	g, err := shm.NewLocal(2)
	if err != nil {
		t.Skip(err)
	}
	var outs, errOuts [2]bytes.Buffer
	var errs [2]error
	var wg sync.WaitGroup
	for r, c := range g {
		wg.Go(func() {
			defer c.Close()
			f := &benchFlags{kind: comm.AllReduce, dtype: "f32", compress: "none", low: 4096, high: 16384, factor: 4, repeat: 2, check: 1, streams: 1}
			cfg, err := f.config()
			if err != nil {
				t.Error(err)
				return
			}
			a := &app{out: &outs[r], err: &errOuts[r], result: &result{w: &outs[r]}}
			var of comm.Communicator = c
			if r == 1 {
				of = &broken{Communicator: c}
			}
			errs[r] = (&benchRun{app: a, f: f, c: of}).measure(t.Context(), cfg)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if exitCode(err) != launch.ExitInternal {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if !strings.HasPrefix(errs[0].Error(), "1 element wrong\n") {
		t.Error(errs[0])
	}
	if s := errOuts[1].String(); !strings.Contains(s, "wrong: rank 1, allreduce f32[1024] sum, call 2: element 17 is ") || errOuts[0].Len() > 0 {
		t.Errorf("%q and %q", errOuts[0].String(), s)
	}
	if s := outs[0].String(); strings.Count(s, "\n") < 7 || outs[1].Len() > 0 {
		t.Errorf("rank 0:\n%s\nrank 1:\n%s", s, outs[1].String())
	}
}

func TestBenchHosts(t *testing.T) {
	var all []byte
	for _, s := range []string{"a\x000\x0010.0.0.1:5", "b\x001\x00", "a\x000\x0010.0.0.1:6", "c\x002\x00", "c\x002\x00", "c\x003\x00"} {
		all = append(all, append([]byte(s), make([]byte, hostText-len(s))...)...)
	}
	var got []string
	for _, h := range hostsOf(all, 6) {
		got = append(got, h.name+": "+h.ranks())
	}
	if s := strings.Join(got, "; "); s != "a: 2 ranks from 0 to 2 at 10.0.0.1:5, 10.0.0.1:6; b: rank 1; c: ranks 3-4; c: rank 5" {
		t.Error(s)
	}
	word := func(c comm.Call) string {
		if c.Elems*4 < 65536 {
			return "exchange"
		}
		return "mesh"
	}
	sizes, err := perf.Sizes(4096, 1<<20, perf.Growth{Factor: 4})
	if err != nil {
		t.Fatal(err)
	}
	l := comm.Level{Transport: "tcp", Ranks: 4, Bandwidth: 125e6, Latency: 14000, Sharing: 2, Algorithm: word, Notes: []string{"congestion control cubic"}}
	want := "tcp between 4 ranks: 1 Gbit/s, 14µs, measured when the ranks met; 2 ranks share it|" +
		"allreduce: exchange to 16 KiB, mesh from 64 KiB|congestion control cubic"
	if s := strings.Join(levelText(l, perf.Config{Kind: comm.AllReduce, DType: npu.F32, Sizes: sizes}), "|"); s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
}

func TestBenchCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"bench ":                       "allreduce\tMeasure allreduce",
		"bench allreduce --transport ": "auto\nshm\ntcp\n:4\n",
		"bench allreduce --compress ":  "none\nf16\nbf16\nint8\n:4\n",
		"bench allgather --dtype ":     "f32\nbf16\n",
	} {
		out, _, code := cli(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%q: code %d\n%s", args, code, out)
		}
	}
	for _, b := range benched {
		if got := benchFor(b.aliases[0]); got != fmt.Sprint(b.kind) {
			t.Errorf("%s is %s", b.aliases[0], got)
		}
	}
}

// Encoded sums are measured with their codec, and are right within what rounding may lose.
func TestBenchCompress(t *testing.T) {
	for _, word := range benchWords["compress"] {
		cmd := program(t, "bench", "allreduce", "--ranks", "2", "--min", "4", "--max", "256K", "--factor", "16", "-n", "3", "--json", "--compress", word)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s%s", word, err, out, errs.String())
		}
		for line := range strings.Lines(string(out)) {
			var l benchLine
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Wrong == nil || *l.Wrong != 0 || (l.Compress == "") != (word == "none") || l.DType != "f32" {
				t.Errorf("%s: %s", word, line)
			}
		}
		if strings.Contains(errs.String(), "sums travel as "+word) != (word != "none") {
			t.Errorf("%s: %s", word, errs.String())
		}
	}
	if _, errs, code := cli(t, "bench", "allreduce", "--compress", "int8", "--op", "max"); code != launch.ExitUsage || !strings.Contains(errs, "for sums of f32") {
		t.Errorf("code %d, %s", code, errs)
	}
	if a, b := tolerance("f16", 4, 1000), tolerance("int8", 2, 1000); a > 4 || b > 32 {
		t.Errorf("tolerances %g and %g let mistakes pass", a, b)
	}
}

// Under a launcher each process is a rank, and --ranks only says so.
func TestBenchUnderMpirun(t *testing.T) {
	mpirun := openMPI(t)
	cmd := program(t)
	cmd.Path = mpirun
	cmd.Args = []string{"mpirun", "--oversubscribe", "-np", "2", os.Args[0], "bench", "reducescatter", "--max", "16K", "-n", "3", "--ranks", "5", "--json"}
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	rows := strings.Count(string(out), `"op":"reducescatter","world":2,`)
	if err != nil || rows != 2 || !strings.Contains(string(out), "2 ranks, set by openmpi; --ranks 5 is ignored") {
		t.Errorf("%v\n%s", err, out)
	}
}
