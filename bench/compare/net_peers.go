// Copyright 2026 The gotrain Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// gotrain over TCP, by gotrain bench, with more options. Between namespaces its ranks start as under torchrun, one a host.
func (t *tcp) gotrain(more ...string) tcpReducer {
	bin, missing := t.build("gotrain", "./cmd/gotrain")
	return tcpReducer{name: "gotrain", missing: missing, run: func(ctx context.Context, n network, world int) (map[int]float64, ran, error) {
		args := append([]string{bin, "bench", "allreduce", "--json", "--transport", "tcp", "--max", strconv.Itoa(t.maxBytes(n))}, more...)
		if !n.namespaced() && world <= cpus() {
			r, err := execute(ctx, nil, args[0], append(args[1:], "--ranks", strconv.Itoa(world))...) // which binds them itself
			return linesWith(r, err)
		}
		port := t.port()
		r, err := together(ctx, world, func(rank int) (env, command []string) {
			local, hosts, host := rank, 1, 0
			if n.namespaced() {
				local, hosts, host = 0, world, rank
			}
			env = []string{"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=" + strconv.Itoa(world), "LOCAL_RANK=" + strconv.Itoa(local),
				"LOCAL_WORLD_SIZE=" + strconv.Itoa(world/hosts), "GROUP_RANK=" + strconv.Itoa(host), "GROUP_WORLD_SIZE=" + strconv.Itoa(hosts),
				"MASTER_ADDR=" + n.address(0), "MASTER_PORT=" + port}
			return env, t.inNamespace(n, rank, pinned(rank, args...)...)
		})
		return linesWith(r, err)
	}}
}

// mark is a bare program over plain sockets: $BENCH_MARK_TCP -w RANKS -a auto|int8 -h BYTES [-x BYTES] [-N NAMESPACES -A ADDRESSES] prints JSON lines.
func (t *tcp) mark(algorithm string) tcpReducer {
	command := strings.Fields(t.o.markTCP)
	if len(command) == 0 {
		command = strings.Fields(os.Getenv("BENCH_MARK_TCP"))
	}
	r := tcpReducer{name: "mark"}
	if len(command) == 0 {
		r.missing = "neither -mark-tcp nor BENCH_MARK_TCP names a program\nhint: it is optional; see bench/README.md"
		return r
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		r.missing = err.Error()
		return r
	}
	r.run = func(ctx context.Context, n network, world int) (map[int]float64, ran, error) {
		args := append(command[1:len(command):len(command)], "-w", strconv.Itoa(world), "-a", algorithm, "-h", strconv.Itoa(t.maxBytes(n)))
		if world > cpus() {
			args = append(args, "-x", "131072") // its better crossover where a step costs a context switch
		}
		if n.namespaced() {
			var addrs []string
			for rank := range world {
				addrs = append(addrs, n.address(rank))
			}
			args = append(args, "-N", t.namesOf(world), "-A", strings.Join(addrs, ","))
		}
		return linesWith(execute(ctx, nil, command[0], args...))
	}
	return r
}

// gloo is PyTorch's transport on the CPU: the better of bound and free ranks, since its own threads share their processors.
func (t *tcp) gloo() tcpReducer {
	return tcpReducer{name: "gloo", missing: torchMissing(), run: func(ctx context.Context, n network, world int) (map[int]float64, ran, error) {
		best, worst := map[string]map[int]float64{}, ran{}
		for _, pin := range []string{"1", "0"} {
			env := []string{"BENCH_PIN=" + pin}
			if n.namespaced() {
				env = append(env, "BENCH_NAMESPACES="+t.namesOf(world), "BENCH_MASTER="+n.address(0))
			}
			got, r, err := linesWith(execute(ctx, env, python(), t.peer("allreduce_gloo.py"), "--world", strconv.Itoa(world), "--max", strconv.Itoa(t.maxBytes(n))))
			if err != nil {
				return nil, r, err
			}
			keepBest(best, "gloo", got)
			worst.disturbed = max(worst.disturbed, r.disturbed)
		}
		return best["gloo"], worst, nil
	}}
}

// openmpi over its TCP transport. Between namespaces mpirun starts its daemons with ip netns exec in place of ssh, each with a host name of its own.
func (t *tcp) openmpi() tcpReducer {
	r := tcpReducer{name: "openmpi"}
	bin := filepath.Join(t.scratch, "mpi_allreduce_tcp")
	if out, err := exec.CommandContext(t.ctx, "mpicc", "-O2", t.peer("mpi_allreduce.c"), "-o", bin).CombinedOutput(); err != nil {
		r.missing = fmt.Sprintf("mpicc: %v %s\nhint: apt-get install openmpi-bin libopenmpi-dev", err, tail(string(out), 2))
		return r
	}
	r.run = func(ctx context.Context, n network, world int) (map[int]float64, ran, error) {
		args := []string{"mpirun", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "-np", strconv.Itoa(world)}
		if os.Geteuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
		if world > cpus() {
			args = append(args, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1") // a daemon of a namespace does not see the ranks of the others
		}
		if n.namespaced() {
			agent, err := t.agent()
			if err != nil {
				return nil, ran{}, err
			}
			var hosts []string
			for rank := range world {
				hosts = append(hosts, n.address(rank)+":1")
			}
			args = append(args, "-H", strings.Join(hosts, ","), "--mca", "plm_rsh_agent", agent, "--mca", "plm_rsh_no_tree_spawn", "1",
				"--mca", "btl_tcp_if_include", "10.9.0.0/24", "--mca", "oob_tcp_if_include", "10.9.0.0/24", "--mca", "orte_keep_fqdn_hostnames", "1")
		}
		args = append(append(args, "--bind-to", "none"), pinnedByMPI(bin, strconv.Itoa(t.maxBytes(n)))...)
		env := []string{"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=100000000000", "MALLOC_TOP_PAD_=536870912"}
		args = t.inNamespace(n, 0, args...)
		got, how, err := linesWith(execute(ctx, env, args[0], args[1:]...))
		if n.namespaced() {
			how.disturbed = 0 // its daemons leave their parent, so what they used cannot be told from what strangers used
		}
		return got, how, err
	}
	return r
}

// agent writes the script that mpirun takes for ssh: it gets an address and a command.
func (t *tcp) agent() (string, error) {
	path := filepath.Join(t.scratch, "agent.sh")
	text := fmt.Sprintf("#!/bin/sh\n# stands in for ssh: 10.9.0.2 is the namespace %s1\nrank=$((${1##*.} - 1))\nshift\n"+
		"exec ip netns exec %[1]s$rank unshare --uts sh -c \"echo node$rank >/proc/sys/kernel/hostname; $*\"\n", t.prefix)
	return path, os.WriteFile(path, []byte(text), 0o755)
}

// linesWith is linesOf that also returns how the program ran.
func linesWith(r ran, err error) (map[int]float64, ran, error) {
	got, err := linesOf(r, err)
	return got, r, err
}

// together runs a command for each rank at once, and returns how they ran, with the output of all. When one fails, the others are ended.
func together(ctx context.Context, world int, command func(rank int) (env, args []string)) (ran, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rs, errs := make([]ran, world), make([]error, world)
	var first error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for rank := range world {
		env, args := command(rank)
		wg.Go(func() {
			rs[rank], errs[rank] = execute(ctx, env, args[0], args[1:]...)
			if errs[rank] == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil || errors.Is(first, context.Canceled) {
				first = fmt.Errorf("rank %d: %w", rank, errs[rank])
			}
			cancel()
		})
	}
	wg.Wait()
	all := rs[0]
	for _, r := range rs[1:] {
		all.stdout = append(all.stdout, r.stdout...)
	}
	for _, r := range rs[1:] { // they are no strangers
		all.disturbed = max(0, all.disturbed-r.used)
	}
	return all, first
}
