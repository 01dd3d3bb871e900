package main

import (
	"context"

	"github.com/gotrain/gotrain/ddp/launch/hosts"
)

// list returns the hosts of the job; many is false if its ranks are started on this host only.
func (r *runner) list(context.Context) (l hosts.List, many bool, err error) {
	switch {
	case r.hosts != "":
		l, err = hosts.ParseList(r.hosts)
	default:
		return l, false, nil
	}
	if err != nil {
		return l, false, err
	}
	if r.nnodes > 0 && r.nnodes < len(l.Hosts) {
		l.Hosts = l.Hosts[:r.nnodes]
	}
	return l, true, nil
}
