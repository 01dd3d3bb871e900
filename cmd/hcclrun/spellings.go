package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// variable is -x NAME or -x NAME=VALUE; Open MPI also takes a list of names.
func variable(o *options, v []string) error {
	name, _, given := strings.Cut(v[0], "=")
	all := []string{v[0]}
	if !given && strings.Contains(name, ",") {
		all = strings.Split(name, ",")
	}
	for _, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		if name == "" || strings.ContainsAny(name, " \t\n\x00") {
			return fmt.Errorf("%q is not the name of a variable", name)
		}
		if name == launch.TokenVar {
			return fmt.Errorf("%s is made by hcclrun for each job, and reaches the ranks without -x", name)
		}
		o.env = append(o.env, kv)
	}
	return nil
}

func envList(o *options, v []string) error {
	for name := range strings.SplitSeq(v[0], ",") {
		if err := variable(o, []string{name}); err != nil {
			return err
		}
	}
	return nil
}

// bind understands hcclrun's and mpirun's words.
func bind(o *options, v []string) error {
	switch v[0] {
	case "auto", "cpus", "core", "cores", "numa", "socket", "hwthread":
		o.noPin = false
	case "none":
		o.noPin = true
	default:
		return fmt.Errorf("%q is none of auto, cpus, none", v[0])
	}
	return nil
}

// mapBy understands ppr:M:node; ranks are placed host by host in any case.
func mapBy(o *options, v []string) error {
	part := strings.Split(v[0], ":")
	switch part[0] {
	case "ppr":
		if len(part) < 3 || part[2] != "node" {
			return fmt.Errorf("%q is not understood\nhint: write ppr:M:node", v[0])
		}
		return count(&o.perNode, part[1], "ranks")
	case "slot", "core", "socket", "numa":
		return nil
	}
	return fmt.Errorf("%q would place consecutive ranks on different hosts\nhint: ranks are placed host by host, which is what collectives want", v[0])
}

// mca takes the network from mpirun's parameters. The others are about Open MPI.
func mca(o *options, v []string) error {
	switch v[0] {
	case "btl_tcp_if_include", "oob_tcp_if_include":
		o.iface = v[1]
	case "plm_rsh_agent":
		o.rsh = v[1]
	default:
		o.ignored = append(o.ignored, "--mca "+v[0]+" "+v[1])
	}
	return nil
}

// key is -i, which is ssh's key for horovodrun, and the hosts to include for deepspeed.
func key(o *options, v []string) error {
	if _, err := os.Stat(v[0]); err == nil {
		o.sshKey = v[0]
	} else {
		o.include = v[0]
	}
	return nil
}

func backend(_ *options, v []string) error {
	if v[0] != "c10d" && v[0] != "static" && v[0] != "etcd" && v[0] != "etcd-v2" {
		return fmt.Errorf("%q is none of c10d and static", v[0])
	}
	if strings.HasPrefix(v[0], "etcd") {
		return fmt.Errorf("there is no %s here\nhint: leave it out: ranks meet at the address of rank 0", v[0])
	}
	return nil
}

// nnodes is a number; torchrun's MIN:MAX must be one number twice.
func nnodes(o *options, v []string) error {
	lo, hi, ranged := strings.Cut(v[0], ":")
	if ranged && lo != hi {
		return fmt.Errorf("%s is a range, and the number of hosts must be fixed\nhint: after a failure, --max-restarts starts the whole group again", v[0])
	}
	return count(&o.nnodes, lo, "hosts")
}

// unknown is the error about a spelling that is not in the table, with the nearest one that is.
func unknown(name string) error {
	best, at := "", 3
	for _, o := range table {
		for n := range strings.FieldsSeq(o.names) {
			if d := distance(plainName(name), plainName(n)); len(n) > 3 && 3*d <= len(n) && d < at {
				best, at = n, d
			}
		}
	}
	if best != "" {
		return fmt.Errorf("unknown flag %s; did you mean %s?", name, best)
	}
	return fmt.Errorf("unknown flag %s", name)
}

// distance is the number of letters to insert, delete or change between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}

// completion prints a script that completes the options of hcclrun; behind them, a program and its arguments are completed by the shell.
func completion(shell string) (string, error) {
	var names []string
	for _, o := range table {
		if o.help != "" {
			for n := range strings.FieldsSeq(o.names) {
				if strings.HasPrefix(n, "--") || len(n) == 2 {
					names = append(names, n)
				}
			}
		}
	}
	slices.Sort(names)
	words := strings.Join(names, " ")
	switch shell {
	case "bash":
		return "_hcclrun() {\n\tcase \"${COMP_WORDS[COMP_CWORD]}\" in\n\t-*) COMPREPLY=($(compgen -W " + strconv.Quote(words) +
			" -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n\t*) COMPREPLY=($(compgen -c -f -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n" +
			"\tesac\n}\ncomplete -F _hcclrun hcclrun\n", nil
	case "zsh":
		return "#compdef hcclrun\n_arguments " + "'*:program:_command_names -e'" + zshWords(names) + "\n", nil
	case "fish":
		var b strings.Builder
		for _, n := range names {
			if long, ok := strings.CutPrefix(n, "--"); ok {
				fmt.Fprintf(&b, "complete -c hcclrun -l %s\n", long)
			}
		}
		return b.String(), nil
	}
	return "", fmt.Errorf("%q is none of bash, zsh, fish", shell)
}

func zshWords(names []string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, " \\\n\t'%s'", n)
	}
	return b.String()
}
