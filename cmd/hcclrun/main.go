package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
)

const usage = `hcclrun starts a program once for each rank on this machine, and supervises the processes.

Usage:
  hcclrun -n N [flags] PROGRAM [arguments]

Examples:
  hcclrun -n 2 gotrain run recipes/resnet50.toml
  hcclrun -np 8 --grace 60s ./my-loop

Flags:
  -n, -np, --nproc N   number of ranks
      --grace TIME     how long ranks may take to end after a stop request, such as 30s (the default). After that time they get a
                       second request, or are killed if a rank failed; after twice the time they are killed. hcclrun waits for a rank
                       that is saving.
      --no-pin         do not bind each rank to its own cores
  -h, --help           show this help

All ranks run on this machine: this version of gotrain does not train on several machines.
SIGINT and SIGTERM are passed on to the ranks, as is a second one (a second later or more); a third kills them.
A closed or full console never ends a job: lines that cannot be written are dropped, and a note gives their number.
Each process gets GOTRAIN_RANK, GOTRAIN_WORLD_SIZE, GOTRAIN_LOCAL_RANK, … in its environment.

Exit codes: that of the first rank that failed, and
`

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	job, help, err := parse(args)
	if help {
		fmt.Fprint(stdout, usage+launch.CodeTable())
		return launch.ExitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "hcclrun: %v\nhint: hcclrun --help\n", err)
		return launch.ExitUsage
	}
	job.Stdout, job.Stderr = stdout, stderr
	defer shm.Sweep("") // ranks that were killed while joining leave a file
	if err := launch.Supervise(ctx, job); err != nil {
		fmt.Fprintf(launch.NewStream(stderr), "hcclrun: %v\n", err)
		return launch.ExitCode(err)
	}
	return launch.ExitOK
}

// parse reads the flags up to the program. It does not use package flag, which would also parse the flags of the program and does not support -np.
func parse(args []string) (job launch.Job, help bool, err error) {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, inline := strings.Cut(args[0], "=")
		args = args[1:]
		take := func() string {
			if !inline && len(args) > 0 {
				value, args = args[0], args[1:]
			} else if !inline {
				err = fmt.Errorf("%s needs a value", name)
			}
			return value
		}
		switch name {
		case "-h", "--help", "-help":
			return job, true, nil
		case "-n", "-np", "--np", "--nproc", "--nproc_per_node", "--nproc-per-node":
			if v := take(); err == nil {
				if job.Ranks, err = strconv.Atoi(v); err != nil || job.Ranks < 1 {
					err = fmt.Errorf("%s needs a positive number of ranks, got %q", name, v)
				}
			}
		case "--grace":
			if v := take(); err == nil {
				if job.Grace, err = time.ParseDuration(v); err != nil || job.Grace <= 0 {
					err = fmt.Errorf("%s needs a duration such as 30s, got %q", name, v)
				}
			}
		case "--no-pin":
			job.NoPin = true
		case "--":
			job.Argv = args
			args = nil
		case "-H", "--host", "--hosts", "--hostfile", "-f", "--nnodes":
			err = fmt.Errorf("%s: ranks are started on this machine only", name)
		default:
			err = fmt.Errorf("unknown flag %s", name)
		}
		if err != nil {
			return job, false, err
		}
	}
	if job.Argv == nil {
		job.Argv = args
	}
	switch {
	case len(job.Argv) == 0:
		return job, false, fmt.Errorf("no program to start")
	case job.Ranks == 0:
		return job, false, fmt.Errorf("the number of ranks is missing: -n N")
	}
	if _, err := exec.LookPath(job.Argv[0]); err != nil {
		return job, false, fmt.Errorf("cannot start %s: %v", job.Argv[0], err)
	}
	return job, false, nil
}
