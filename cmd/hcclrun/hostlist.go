package main

import (
	"context"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/launch/hosts"
	"github.com/gotrain/gotrain/ddp/launch/remote"
)

// list returns the hosts of the job; many is false if its ranks are started on this host only.
func (r *runner) list(ctx context.Context) (l hosts.List, many bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.startTimeout())
	defer cancel()
	switch {
	case r.hosts != "" && r.hostfile != "":
		return l, false, usageError{errTwoLists}
	case r.hosts != "":
		l, err = hosts.ParseList(r.hosts)
	case r.hostfile != "":
		l, err = hosts.Read(ctx, r.hostfile)
	case r.oneHost():
		return l, false, nil
	default:
		if _, pod, err := launch.PodOf(r.lookup); pod || err != nil {
			return l, false, err
		}
		if l, many, err = hosts.Default(ctx, r.lookup); !many {
			return l, false, err
		}
		// A scheduler's number of tasks says nothing of devices: -n may ask for more.
		r.spread = r.spread || l.Scheduler
		if len(l.Hosts) == 1 && r.ranks > 0 && remote.Own(ctx, l.Hosts[0].Name, !l.Scheduler) {
			return l, false, nil
		}
	}
	if err == nil {
		l, err = l.Filter(r.include, r.exclude)
	}
	if err == nil {
		err = l.Consecutive()
	}
	if err != nil {
		return l, false, err
	}
	if r.nnodes > 0 && r.nnodes < len(l.Hosts) {
		l.Hosts = l.Hosts[:r.nnodes]
	}
	return l, true, nil
}

// oneHost reports whether the options speak of the ranks of this host.
func (r *runner) oneHost() bool {
	return r.nnodes > 0 || r.nodeRank >= 0 || r.nproc != "" || r.alone || r.master != "" || r.endpoint != ""
}
