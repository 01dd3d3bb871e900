package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gotrain/gotrain/ddp/launch"
)

var (
	errTwoLists = errors.New("both -H and --hostfile are given: only one can be")
	errNoRanks  = errors.New("the number of ranks is missing: -n N")
)

// here completes a job whose ranks are started on this host only: all of them, or those of one host among several that have an hcclrun each.
func (r *runner) here(job *launch.Job) error {
	pod, err := r.pod()
	if err != nil {
		return err
	}
	if job.Ranks, err = r.localRanks(); err != nil {
		return err
	}
	if pod.Nodes == 1 {
		if job.Ranks = max(job.Ranks, pod.Ranks); job.Ranks == 0 {
			return usageError{errNoRanks}
		}
		return nil
	}
	if job.Ranks > 0 { // the options win over what an operator left
		pod.Ranks = job.Ranks
	} else if pod.Ranks == 0 {
		pod.Ranks = max(1, npus())
	}
	if pod.MasterPort == 0 {
		pod.MasterPort = 29500 // torchrun's
	}
	if r.id != "" {
		job.JobID = fmt.Sprintf("run-%s-%d", r.id, pod.Restart)
	}
	pod.Place(job)
	job.Env = append(append(job.Env[:len(job.Env):len(job.Env)], pod.Environ()...), r.interfaceEnv()...)
	return nil
}

// pod is the place of this host among those of the job, by the options or by what an operator left.
func (r *runner) pod() (p launch.Pod, err error) {
	if p = (launch.Pod{Node: r.nodeRank, Nodes: max(1, r.nnodes), MasterAddr: r.master, MasterPort: r.port, By: "--nnodes"}); !r.oneHost() {
		var found bool
		if p, found, err = launch.PodOf(r.lookup); err != nil || found {
			return p, err
		}
		return launch.Pod{Nodes: 1}, nil
	}
	where := r.endpoint
	if p.MasterAddr != "" {
		where = p.MasterAddr
	}
	if where != "" {
		host, port, err := launch.Endpoint(where)
		if err != nil {
			return p, usageError{err}
		}
		if p.MasterAddr = host; port != 0 {
			p.MasterPort = port
		}
	}
	switch {
	case r.alone && p.Nodes > 1:
		err = errors.New("--standalone is one host, and --nnodes says more")
	case p.Nodes == 1 && p.Node > 0:
		err = fmt.Errorf("--node_rank %d of one host\nhint: --nnodes gives the number of hosts", p.Node)
	case p.Nodes == 1:
	case p.Node < 0:
		err = errors.New("--node_rank is missing: which of the hosts is this?\nhint: 0 on the first one, 1 on the second, …")
	case p.Node >= p.Nodes:
		err = fmt.Errorf("--node_rank %d is not below --nnodes %d", p.Node, p.Nodes)
	case p.MasterAddr == "":
		err = errors.New("--master_addr is missing: the address of the host with --node_rank 0")
	}
	if err != nil {
		return p, usageError{err}
	}
	return p, nil
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
