package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/shm"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/ddp/launch/remote"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == agentFlag {
		os.Exit(agent())
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// agentFlag makes this program the agent of another hcclrun. It is no option for people.
const agentFlag = "--agent"

// agent starts ranks on this host for an hcclrun on another one, which is at the other end of standard input and output.
func agent() int {
	err := remote.Serve(context.Background(), os.Stdin, os.Stdout, remote.Serving{Sweep: sweep})
	if err != nil {
		fmt.Fprintf(os.Stderr, "hcclrun --agent: %v\n", err)
	}
	return launch.ExitCode(err)
}

// sweep removes what ranks that were killed while joining left on this host.
func sweep() { shm.Sweep("") }

// runner is one call of hcclrun.
type runner struct {
	options
	lookup         launch.Lookup
	stdout, stderr io.Writer
}

// usageError is an error of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
func (e usageError) ExitCode() int { return launch.ExitUsage }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := &runner{lookup: os.LookupEnv, stdout: stdout, stderr: launch.NewStream(stderr)}
	var err error
	if r.options, err = parse(args); err != nil {
		err = usageError{err}
	} else {
		err = r.run(ctx, stderr)
	}
	var wrong usageError
	switch {
	case err == nil:
		return launch.ExitOK
	case errors.As(err, &wrong) && !strings.Contains(err.Error(), "\nhint: "):
		fmt.Fprintf(r.stderr, "hcclrun: %v\nhint: hcclrun --help\n", err)
	default:
		fmt.Fprintf(r.stderr, "hcclrun: %v\n", err)
	}
	return launch.ExitCode(err)
}

// run does what the options say.
func (r *runner) run(ctx context.Context, stderr io.Writer) error {
	switch {
	case r.help:
		fmt.Fprint(r.stdout, helpText())
		return nil
	case r.done != "":
		text, err := completion(r.done)
		if err == nil {
			fmt.Fprint(r.stdout, text)
			return nil
		}
		return usageError{err}
	}
	if len(r.ignored) > 0 {
		fmt.Fprintf(r.stderr, "hcclrun: without effect here: %s\n", strings.Join(r.ignored, ", "))
	}
	job := launch.Job{Argv: r.argv, Dir: r.wdir, Grace: r.grace, NoPin: r.noPin, Restarts: r.restarts, TagAll: r.tagAll, Logs: r.logs,
		Stdout: r.stdout, Stderr: stderr}
	var err error
	if job.Env, err = r.environ(os.Environ()); err != nil {
		return usageError{err}
	}
	list, many, err := r.list(ctx)
	if err != nil {
		return err
	}
	if many {
		return r.across(ctx, list, job)
	}
	if r.check {
		return usageError{errors.New("--check examines the hosts of a list: give -H or --hostfile")}
	}
	if err := r.here(&job); err != nil {
		return err
	}
	if err := r.program(); err != nil {
		return err
	}
	defer sweep()
	return launch.Supervise(ctx, job)
}

// program checks that there is one, and that it exists.
func (r *runner) program() error {
	if len(r.argv) == 0 || r.argv[0] == "" {
		return usageError{errors.New("no program to start")}
	}
	if _, err := exec.LookPath(r.argv[0]); err != nil {
		return usageError{fmt.Errorf("cannot start %s: %w", r.argv[0], err)}
	}
	return nil
}

// startTimeout is how long hosts may take to answer.
func (r *runner) startTimeout() time.Duration {
	if r.start > 0 {
		return r.start
	}
	return 30 * time.Second
}
