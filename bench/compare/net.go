// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// network is where the ranks of an all-reduce over TCP are.
type network struct {
	name string  // lo, veth, or a rate such as 1gbit
	rate float64 // bytes a second that each rank may send; 0: as fast as it goes
}

// networks reads -net.
func networks(list string) (out []network, err error) {
	for name := range strings.SplitSeq(list, ",") {
		n := network{name: name}
		if name != "lo" && name != "veth" {
			digits := strings.TrimRight(name, "gmkbit")
			v, err := strconv.ParseFloat(digits, 64)
			scale := map[string]float64{"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[name[len(digits):]]
			if err != nil || v <= 0 || scale == 0 {
				return nil, fmt.Errorf("-net %q: lo, veth, or a rate such as 1gbit", name)
			}
			n.rate = v * scale / 8
		}
		out = append(out, n)
	}
	return out, nil
}

// namespaced reports whether each rank has a network namespace of its own.
func (n network) namespaced() bool { return n.name != "lo" }

// address of rank r, as bench/namespaces.sh gives it.
func (n network) address(r int) string {
	if !n.namespaced() {
		return "127.0.0.1"
	}
	return fmt.Sprintf("10.9.0.%d", r+1)
}

// tcpReducer all-reduces over TCP and tells microseconds by size in bytes.
type tcpReducer struct {
	name    string
	missing string
	run     func(ctx context.Context, n network, world int) (map[int]float64, ran, error)
}

// tcp is what all contestants of a comparison over TCP share.
type tcp struct {
	*harness
	prefix string // of the namespaces
	worlds []int
	ports  int // used so far
}

// net compares all-reduces over TCP: on the loopback interface, and between network namespaces; with codecs and without, or the former only.
func (h *harness) net(codecsOnly bool) error {
	nets, err := networks(h.o.nets)
	if err != nil {
		return err
	}
	t := &tcp{harness: h, prefix: h.o.namespaces}
	if t.worlds, err = numbers("-world", h.o.worlds); err != nil {
		return err
	}
	if slices.Min(t.worlds) < 2 || slices.Max(t.worlds) > 16 {
		return errors.New("-world: 2 to 16 ranks")
	}
	races := []func(n network, world int) error{t.raceCodecs}
	if !codecsOnly {
		field, err := t.field()
		if err != nil {
			return err
		}
		races = append(races, func(n network, world int) error { return t.race(n, world, field) })
	}
	up := false
	defer func() {
		if up {
			t.namespaces(context.Background(), "down")
		}
	}()
	for _, n := range nets {
		if n.namespaced() {
			if !up {
				if err := t.namespaces(h.ctx, "up"); err != nil {
					fmt.Fprintf(h.out, "%s is not measured: %v\n", n.name, err)
					continue
				}
				up = true
			}
			rate := "none"
			if n.rate > 0 {
				rate = n.name
			}
			if err := t.namespaces(h.ctx, "rate", rate); err != nil {
				return err
			}
		}
		for _, world := range t.worlds {
			for _, race := range races {
				if err := race(n, world); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// field has the contestants that can run.
func (t *tcp) field() (field []tcpReducer, err error) {
	for _, r := range []tcpReducer{t.gotrain(), t.mark("auto"), t.gloo(), t.openmpi()} {
		if r.missing != "" {
			fmt.Fprintf(t.out, "%s does not take part: %s\n", r.name, r.missing)
			continue
		}
		field = append(field, r)
	}
	if len(field) == 0 {
		return nil, errors.New("no contestant can run")
	}
	return field, nil
}

// namespaces runs bench/namespaces.sh.
func (t *tcp) namespaces(ctx context.Context, what string, more ...string) error {
	args := append([]string{filepath.Join(t.o.bench, "namespaces.sh"), what, t.prefix, strconv.Itoa(slices.Max(t.worlds))}, more...)
	out, err := exec.CommandContext(ctx, "sh", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, tail(string(out), 3))
	}
	return nil
}

// race lets all contestants run in turn, several times, and prints the best of each.
func (t *tcp) race(n network, world int, field []tcpReducer) error {
	best, err := t.inTurn(n, world, field)
	if err == nil {
		printNet(t.out, n, world, t.o.rounds, field, best)
	}
	return err
}

// inTurn lets contestants run in turn, several times, and returns the best time of each by size.
func (t *tcp) inTurn(n network, world int, field []tcpReducer) (map[string]map[int]float64, error) {
	best, others := map[string]map[int]float64{}, 0.0
	for round := range t.o.rounds {
		for _, r := range field {
			ctx, cancel := context.WithTimeout(t.ctx, t.o.timeout)
			got, how, err := r.run(ctx, n, world)
			cancel()
			if t.ctx.Err() != nil {
				return nil, t.ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(t.out, "%s on %s, %d ranks, round %d failed: %v\n", r.name, n.name, world, round+1, err)
				continue
			}
			fmt.Fprintf(t.progress, "all-reduce over %s, %d ranks, round %d, %s done\n", n.name, world, round+1, r.name)
			others = max(others, how.disturbed)
			keepBest(best, r.name, got)
		}
	}
	if others > t.o.disturbed {
		fmt.Fprintf(t.out, "others used up to %.0f %% of the machine meanwhile: measure again on an idle one\n", others)
	}
	return best, nil
}

// keepBest keeps the shortest time of each size.
func keepBest(best map[string]map[int]float64, name string, got map[int]float64) {
	if best[name] == nil {
		best[name] = map[int]float64{}
	}
	for size, us := range got {
		if old, have := best[name][size]; !have || us < old {
			best[name][size] = us
		}
	}
}

// printNet shows the best times, what part of the wire's bound the first contestant reaches where there is a rate, and its ratio to each of the others.
func printNet(out io.Writer, n network, world, rounds int, field []tcpReducer, best map[string]map[int]float64) {
	sizes := map[int]bool{}
	for _, m := range best {
		for size := range m {
			sizes[size] = true
		}
	}
	if len(sizes) == 0 {
		fmt.Fprintf(out, "no all-reduce over %s of %d ranks was measured\n", n.name, world)
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "f32 over %s, %d ranks\t", n.name, world)
	for _, r := range field {
		fmt.Fprintf(w, "%s µs\t", r.name)
	}
	if n.rate > 0 {
		fmt.Fprintf(w, "%s of bound\t", field[0].name)
	}
	for _, r := range field[1:] {
		fmt.Fprintf(w, "/ %s\t", r.name)
	}
	fmt.Fprintln(w)
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		fmt.Fprintf(w, "%s\t", bytesName(size))
		for _, r := range field {
			fmt.Fprintf(w, "%s\t", known(best[r.name][size], "%.1f"))
		}
		mine := best[field[0].name][size]
		if n.rate > 0 {
			part := 0.0
			if mine > 0 {
				part = 100 * wireBound(size, world, n.rate) / mine
			}
			fmt.Fprintf(w, "%s\t", known(part, "%.1f %%"))
		}
		for _, r := range field[1:] {
			ratio := 0.0
			if its := best[r.name][size]; its > 0 {
				ratio = mine / its
			}
			fmt.Fprintf(w, "%s\t", known(ratio, "%.2f"))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "best of %d rounds in turn; / = time of %s divided by that one's, below 1 is faster", rounds, field[0].name)
	if n.rate > 0 {
		fmt.Fprint(out, "; bound = 2(w−1)/w × bytes / rate")
	}
	fmt.Fprintln(out)
}

// wireBound is the least time of an all-reduce on links of a rate, in microseconds.
func wireBound(bytes, world int, rate float64) float64 {
	return 2 * float64(world-1) / float64(world) * float64(bytes) / rate * 1e6
}

// maxBytes is the largest size on a network.
func (t *tcp) maxBytes(n network) int {
	if n.rate > 0 {
		return min(t.o.maxBytes, 64<<20) // seconds for each call
	}
	return t.o.maxBytes
}

// inNamespace puts a command into the namespace of a rank.
func (t *tcp) inNamespace(n network, rank int, args ...string) []string {
	if !n.namespaced() {
		return args
	}
	return append([]string{"ip", "netns", "exec", t.prefix + strconv.Itoa(rank)}, args...)
}

// namesOf are the namespaces of all ranks, with commas between them.
func (t *tcp) namesOf(world int) string {
	var names []string
	for r := range world {
		names = append(names, t.prefix+strconv.Itoa(r))
	}
	return strings.Join(names, ",")
}

// pinned binds the command of a rank to a processor, as the mark binds its ranks: with more ranks than processors, several share one.
func pinned(rank int, args ...string) []string {
	if _, err := exec.LookPath("taskset"); err != nil {
		return args
	}
	return append([]string{"taskset", "-c", strconv.Itoa(rank % cpus())}, args...)
}

// pinnedByMPI is pinned for a command that Open MPI starts once per rank. Its own binding does not know that namespaces share processors.
func pinnedByMPI(args ...string) []string {
	if _, err := exec.LookPath("taskset"); err != nil {
		return args
	}
	return append([]string{"sh", "-c", fmt.Sprintf(`exec taskset -c $((OMPI_COMM_WORLD_RANK %% %d)) "$@"`, cpus()), "sh"}, args...)
}

// port for the ranks of one run to meet at, another one each time: the one before may still be in TIME_WAIT.
func (t *tcp) port() string {
	t.ports++
	return strconv.Itoa(23456 + os.Getpid()%1000 + t.ports%1000)
}
