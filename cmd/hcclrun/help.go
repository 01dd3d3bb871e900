package main

import (
	"fmt"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

const usage = `hcclrun starts a program once for each rank, on this machine or on many, and supervises the processes.

Usage:
  hcclrun -n N [flags] PROGRAM [arguments]                          on this machine
  hcclrun -H LIST | --hostfile FILE [flags] PROGRAM [arguments]     on many, over ssh
  hcclrun --nnodes N --node_rank K --nproc_per_node M --master_addr A --master_port P PROGRAM [arguments]
                                                                    one hcclrun on each of many, without ssh

Examples:
  hcclrun -n 2 gotrain run recipes/resnet50.toml
  hcclrun -H n1:8,n2:8 --check
  hcclrun -H n1:8,n2:8 gotrain run recipes/resnet50.toml
  hcclrun --hostfile hosts --copy --max-restarts 3 --output logs gotrain run my.toml
  hcclrun -H n1:8,n2:8 --interface 10.0.0.0/8 -x MY_SETTING=1 ./my-loop

Flags:
`

const notes = `
Spellings of mpirun, torchrun, horovodrun and deepspeed are accepted too. Without -H and --hostfile, the list of hosts comes from what an MPI
operator, Volcano or Slurm left, if they did; otherwise all ranks run on this machine.

On other hosts, ssh starts "hcclrun --agent", which must be at the same path there (or --copy sends it). No port is opened for that. Ranks of several
hosts meet at a TCP port of the first one.

SIGINT and SIGTERM are passed on to the ranks, as is a second one (a second later or more); a third kills them. When anything dies, hcclrun, ssh,
an agent or a rank, no process of the job is left on any host.
A closed or full console never ends a job: lines that cannot be written are dropped, and a note gives their number.
Each process gets GOTRAIN_RANK, GOTRAIN_WORLD_SIZE, GOTRAIN_LOCAL_RANK, … in its environment.

Exit codes: that of the first rank that failed, 69 if a host cannot be used or is lost, and
`

// helpText is the whole help.
func helpText() string {
	var b strings.Builder
	b.WriteString(usage)
	for _, o := range table {
		if o.help == "" {
			continue
		}
		names := strings.Fields(o.names)
		show := names[0]
		for _, n := range names[1:] { // the short one and the long one; the others are accepted silently
			if strings.HasPrefix(n, "--") != strings.HasPrefix(show, "--") && len(n) <= 2 || strings.HasPrefix(n, "--") && len(names[0]) <= 2 {
				show += ", " + n
				break
			}
		}
		if o.arg != "" {
			show += " " + o.arg
		}
		lines := strings.Split(o.help, "\n")
		if len(show) > 27 {
			fmt.Fprintf(&b, "  %s\n  %-28s%s\n", show, "", lines[0])
		} else {
			fmt.Fprintf(&b, "  %-28s%s\n", show, lines[0])
		}
		for _, l := range lines[1:] {
			fmt.Fprintf(&b, "  %-28s%s\n", "", l)
		}
	}
	b.WriteString(notes)
	b.WriteString(launch.CodeTable())
	return b.String()
}
