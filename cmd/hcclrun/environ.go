package main

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// environ is the environment of ranks on this host: that of hcclrun, and what -x sets.
func (r *runner) environ(base []string) ([]string, error) {
	env := base
	for _, kv := range r.env {
		if strings.Contains(kv, "=") {
			env = append(env[:len(env):len(env)], kv)
		} else if _, set := r.lookup(kv); !set {
			return nil, fmt.Errorf("-x %s: this variable is not set here\nhint: give a value: -x %s=VALUE", kv, kv)
		}
	}
	return env, nil
}

// sentPrefixes begin the names of variables that other hosts get without -x.
var sentPrefixes = []string{"GOTRAIN_", "HCCL_", "ASCEND_", "OMP_"}

// secretWords are in names of variables that other hosts get with -x only.
var secretWords = []string{"TOKEN", "KEY", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL"}

// forward returns the variables that are sent to another host.
func (r *runner) forward(env []string) (out []string) {
	asked := map[string]bool{}
	for _, kv := range r.env {
		name, _, _ := strings.Cut(kv, "=")
		asked[name] = true
	}
	for _, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); ok && (asked[name] || sent(name)) && name != launch.TokenVar {
			out = append(out, kv)
		}
	}
	return out
}

// sent reports whether a variable is sent without being asked for.
func sent(name string) bool {
	up := strings.ToUpper(name)
	for _, w := range secretWords {
		if strings.Contains(up, w) {
			return false
		}
	}
	for _, p := range sentPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	switch name {
	case "PATH", "LD_LIBRARY_PATH", // a remote shell that is no login shell has neither of the user
		"ASCEND_RT_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME":
		return true
	}
	return false
}
