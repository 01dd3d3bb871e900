package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

// exitCase is a command that must end with a code, and say why.
type exitCase struct {
	name  string
	args  []string
	env   []string
	ranks []string // -n; empty: none
	out   string   // path of stdout; empty: with the rest
	mark  string   // do begins once this text is out
	do    func(cmd *os.Process)
	code  int
	want  string
}

// The table of exit codes holds for real processes, with one rank and with several.
func TestExitCodes(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	file := filepath.Join(filepath.Dir(dir), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(logs, "metrics.jsonl")); err != nil {
		t.Fatal(err)
	}
	both := []string{"1", "2"}
	send := func(s syscall.Signal) func(*os.Process) { return func(p *os.Process) { p.Signal(s) } }
	run := func(sets ...string) []string {
		args := []string{"run", recipe, "--set", "checkpoint.every_steps=0"}
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		return args
	}
	long := "run.steps=1000000"
	noData := run("data.kind=imagefolder", "data.root="+filepath.Join(dir, "none"))
	for _, c := range []exitCase{
		{name: "done", args: []string{"version"}, code: launch.ExitOK, want: "gotrain "},
		{name: "flag", args: []string{"run", "--nope"}, code: launch.ExitUsage, want: "unknown flag"},
		{name: "launcher", args: run(), env: []string{"RANK=1"}, code: launch.ExitUsage, want: "WORLD_SIZE"},
		{name: "no data", args: noData, ranks: both, code: launch.ExitNoInput, want: "no data set at this path"},
		{name: "no checkpoint", args: []string{"inspect", file + ".none"}, code: launch.ExitNoInput, want: "no such file"},
		{name: "no device", args: run("train.device=cpu"), env: []string{"GOTRAIN_ONEDNN=" + file}, ranks: both, code: launch.ExitUnavailable, want: "cpu"},
		{name: "output folder is a file", args: run("run.output_dir=" + file), ranks: both, code: launch.ExitStorage, want: "not a directory"},
		{name: "checkpoint folder is a file", args: run("checkpoint.dir=" + file), ranks: both, code: launch.ExitStorage, want: "not a directory"},
		{name: "log to a full disk", args: run("run.output_dir=" + logs), ranks: both, code: launch.ExitStorage, want: "no space left"},
		{name: "result to a full disk", args: []string{"recipes", "show", "quickstart"}, out: "/dev/full", code: launch.ExitStorage, want: "no space left"},
		{name: "JSON to a full disk", args: []string{"version", "--json"}, out: "/dev/full", code: launch.ExitStorage, want: "no space left"},
		{name: "help to a full disk", args: []string{"--help"}, out: "/dev/full", code: launch.ExitStorage, want: "no space left"},
		{name: "diverged", args: run("optim.lr=1000", "run.steps=100"), ranks: both, code: launch.ExitNumerics, want: "not finite"},
		{name: "recipe", args: run("model.depth=17"), code: launch.ExitRecipe, want: "model.depth"},
		{name: "stopped", args: run(long), ranks: both, mark: "Step 1/", do: send(syscall.SIGTERM), code: launch.ExitStopped, want: "stopped on request"},
		{name: "starts over", args: run(long, "checkpoint.enabled=false"), ranks: both, mark: "Step 1/",
			do: send(syscall.SIGTERM), code: launch.ExitNotResumable, want: "starts over"},
		{name: "quit", args: run(long), ranks: both, mark: "Step 1/", do: send(syscall.SIGQUIT), code: 128 + int(syscall.SIGQUIT), want: "goroutine"},
		{name: "frozen rank", args: run(long, "train.collective_timeout_seconds=2", "train.grace_seconds=1"), ranks: []string{"2"}, mark: "Step 1/",
			code: launch.ExitTimeout,
			do:   func(p *os.Process) { syscall.Kill(childWithRank(t, p.Pid, 1), syscall.SIGSTOP) }, want: "rank 1"},
	} {
		ranks := c.ranks
		if ranks == nil {
			ranks = []string{""}
		}
		for _, n := range ranks {
			t.Run(strings.TrimSpace(c.name+" "+n), func(t *testing.T) {
				args := c.args
				if n != "" {
					args = append(args[:len(args):len(args)], "-n", n)
				}
				if args[0] == "run" && !strings.Contains(fmt.Sprint(args), "run.output_dir") {
					args = append(args[:len(args):len(args)], "--set", "run.output_dir="+t.TempDir())
				}
				cmd := program(t, args...)
				cmd.Env = append(cmd.Env, c.env...)
				c.check(t, cmd)
			})
		}
	}
}

func (c *exitCase) check(t *testing.T, cmd *exec.Cmd) {
	var out transcript.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if c.out != "" {
		f, err := os.OpenFile(c.out, os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		cmd.Stdout = f
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if c.do != nil {
		out.WaitFor(t, c.mark, 1)
		c.do(cmd.Process)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(out.String(), c.want) {
		t.Errorf("exit code %d, want %d with %q in\n%s", code, c.code, c.want, tail(out.String()))
	}
}
