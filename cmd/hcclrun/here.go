package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gotrain/gotrain/ddp/launch"
)

// here completes a job whose ranks are started on this host only: all of them, or those of one host among several that have an hcclrun each.
func (r *runner) here(job *launch.Job) error {
	n, err := r.localRanks()
	if err != nil {
		return err
	}
	nodes, node := max(1, r.nnodes), r.nodeRank
	addr, port := r.master, r.port
	if r.endpoint != "" && addr == "" {
		if addr, port, err = r.splitEndpoint(); err != nil {
			return err
		}
	}
	if r.alone && nodes > 1 {
		return usageError{errors.New("--standalone is one host, and --nnodes says more")}
	}
	if nodes == 1 {
		if node > 0 {
			return usageError{fmt.Errorf("--node_rank %d of one host\nhint: --nnodes gives the number of hosts", node)}
		}
		if n == 0 {
			return usageError{errors.New("the number of ranks is missing: -n N")}
		}
		job.Ranks = n
		return nil
	}
	switch {
	case node < 0:
		return usageError{errors.New("--node_rank is missing: which of the hosts is this?\nhint: 0 on the first one, 1 on the second, …")}
	case node >= nodes:
		return usageError{fmt.Errorf("--node_rank %d is not below --nnodes %d", node, nodes)}
	case addr == "":
		return usageError{errors.New("--master_addr is missing: the address of the host with --node_rank 0")}
	}
	if ip := net.ParseIP(addr); ip != nil && (ip.IsMulticast() || ip.IsUnspecified()) {
		return usageError{fmt.Errorf("%s is not an address that one can connect to\nhint: give the address of rank 0", addr)}
	}
	if port == 0 {
		port = 29500 // torchrun's
	}
	n = max(n, 1)
	job.Ranks, job.First, job.World, job.NodeRank, job.Nodes = n, node*n, nodes*n, node, nodes
	job.JobID = fmt.Sprintf("nodes-%s-%s-%d", r.id, addr, port) // equal on all hosts
	job.Env = append(job.Env[:len(job.Env):len(job.Env)], "GOTRAIN_MASTER_ADDR="+addr, "GOTRAIN_MASTER_PORT="+strconv.Itoa(port))
	job.Env = append(job.Env, r.interfaceEnv()...)
	if v, ok := r.lookup(launch.TokenVar); ok {
		job.Token = v // so that it is printed nowhere
	}
	return nil
}

// localRanks is the number of ranks on this host; 0 if nothing says it.
func (r *runner) localRanks() (int, error) {
	switch r.nproc {
	case "":
		return max(r.ranks, r.perNode), nil
	case "auto":
		if n := npus(); n > 0 {
			return n, nil
		}
		return launch.Cores(), nil
	case "npu", "gpu":
		if n := npus(); n > 0 {
			return n, nil
		}
		return 0, usageError{fmt.Errorf("--nproc_per_node %s: this host has no NPU (/dev/davinci*)", r.nproc)}
	case "cpu":
		return launch.Cores(), nil
	}
	var n int
	if err := count(&n, r.nproc, "ranks"); err != nil {
		return 0, usageError{fmt.Errorf("--nproc_per_node: %w", err)}
	}
	return n, nil
}

// npus counts the devices of this host.
func npus() int {
	found, _ := filepath.Glob("/dev/davinci[0-9]*")
	return len(found)
}

// splitEndpoint is --rdzv_endpoint.
func (r *runner) splitEndpoint() (string, int, error) {
	host, text, err := net.SplitHostPort(r.endpoint)
	if err != nil {
		return r.endpoint, 0, nil // no port
	}
	var n int
	if err := port(&n, text); err != nil || host == "" {
		return "", 0, usageError{fmt.Errorf("--rdzv_endpoint %s: not HOST:PORT", r.endpoint)}
	}
	return host, n, nil
}

// interfaceEnv tells ranks the network to use.
func (r *runner) interfaceEnv() []string {
	if r.iface == "" {
		return nil
	}
	env := []string{"GLOO_SOCKET_IFNAME=" + r.iface}
	if _, set := os.LookupEnv("HCCL_SOCKET_IFNAME"); !set && plainNames(r.iface) {
		env = append(env, "HCCL_SOCKET_IFNAME="+r.iface)
	}
	return env
}

// plainNames reports whether a list has names of interfaces only, which is all that HCCL understands.
func plainNames(list string) bool {
	for _, c := range list {
		if c == '/' || c == ':' || c == '.' {
			return false
		}
	}
	return true
}
