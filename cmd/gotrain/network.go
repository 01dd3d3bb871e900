package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gotrain/gotrain/ddp/comm/link"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/simulate"
	"github.com/gotrain/gotrain/internal/amount"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/telemetry"
)

// networkFlags describe the network that a plan is made for.
type networkFlags struct {
	nodes    int
	link     string
	local    string
	measured string
}

func (f *networkFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.nodes, "nodes", 0, "plan for the ranks of this `number` of machines; with --link the default is one rank a machine")
	c.Flags().StringVar(&f.link, "link", "", "`bandwidth,latency` of the network between machines, such as 25gbit,20us or 12.5GB/s,5us")
	c.Flags().StringVar(&f.local, "local-link", "", "`bandwidth,latency` between ranks of a machine; the default is shared memory, 8GB/s,400ns")
	c.Flags().StringVar(&f.measured, "measured", "", "take the times of kernels from the metrics.jsonl `file` of a run with the same model and batch")
}

// given reports whether a prediction for a network is asked for.
func (f *networkFlags) given() bool {
	return f.nodes != 0 || f.link != "" || f.local != "" || f.measured != ""
}

// hosts is the number of machines for a number of ranks.
func (f *networkFlags) hosts(ranks int) int {
	switch {
	case f.nodes > 0:
		return f.nodes
	case f.link != "":
		return ranks
	}
	return 1
}

// network reads the flags.
func (f *networkFlags) network(r *recipes.Recipe) (n train.Network, err error) {
	usage := func(err error) (train.Network, error) { return n, launch.WithCode(launch.ExitUsage, err) }
	ranks := max(1, r.Train.Ranks)
	n.Compress = r.Comm.Compress
	n.Cluster = link.Cluster{Ranks: ranks, Hosts: f.hosts(ranks)}
	switch {
	case f.nodes < 0:
		return usage(fmt.Errorf("--nodes %d", f.nodes))
	case f.nodes > 1 && f.link == "":
		return usage(fmt.Errorf("--nodes %d needs the network between them\nhint: for example --link 25gbit,20us", f.nodes))
	case ranks%n.Cluster.Hosts != 0:
		return usage(fmt.Errorf("%d ranks cannot be spread evenly over %d machines\nhint: choose --ranks as a multiple of --nodes", ranks, n.Cluster.Hosts))
	}
	if f.link != "" {
		if n.Cluster.Link, err = link.Parse(f.link); err != nil {
			return usage(fmt.Errorf("--link: %w", err))
		}
	}
	if f.local != "" {
		if n.Cluster.Local, err = link.Parse(f.local); err != nil {
			return usage(fmt.Errorf("--local-link: %w", err))
		}
	}
	if n.Cluster.Topology, err = link.ParseTopology(r.Comm.Topology); err != nil {
		return usage(err)
	}
	if f.measured != "" {
		k, err := telemetry.ReadKernels(f.measured)
		if err != nil {
			return n, launch.WithCode(launch.ExitNoInput, fmt.Errorf("--measured: %w", err))
		}
		n.Measured = &k
	}
	return n, nil
}

// printNetwork prints a prediction.
func (a *app) printNetwork(w io.Writer, p *train.Prediction) {
	round := simulate.Round
	fmt.Fprintf(a.out, "\nnetwork\n")
	fmt.Fprintf(w, "  ranks\t%d on %d %s\n", p.Ranks, p.Hosts, plural(p.Hosts, "host"))
	fmt.Fprintf(w, "  algorithms\t%s\n", p.Algorithms)
	fmt.Fprintf(w, "  times of kernels\t%s\n", p.Kernels)
	fmt.Fprintf(w, "  step\t%s\n", p.Sentence())
	if m := p.Measured; m != nil {
		fmt.Fprintf(w, "  that run\t%v a step, %v of it exposed: the prediction differs by %+.0f %%\n", round(m.Step), round(m.Exposed), 100*m.Off)
	}
	if p.Ranks == 1 {
		return
	}
	fmt.Fprintf(w, "  collectives\t%v a step, hidden or not; %v would be exposed in float32 on an ideal wire of this bandwidth\n",
		round(p.Result.Wire), round(p.Bound))
	fmt.Fprintf(w, "  compression\t%s\n", p.Advice())
	for _, c := range p.Codecs {
		verb, d := "saves", c.Saves
		if d < 0 {
			verb, d = "costs", -d
		}
		fmt.Fprintf(w, "  %s\t%v a step, %v exposed; %s %v and takes %s of memory\n",
			c.Codec, round(c.Step), round(c.Exposed), verb, round(d), amount.Bytes(c.Memory))
	}
	b := p.Best
	fmt.Fprintf(w, "  best buckets\t%d, of at most %.4g MiB, the first %.4g, the last %.4g: %v exposed; bucket_mb = \"auto\" chooses them\n",
		b.Buckets, b.Cap, b.First, b.Last, round(b.Exposed))
}
