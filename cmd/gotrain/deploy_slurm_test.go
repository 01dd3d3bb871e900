package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

// standInSrun starts two tasks as srun does, passes signals on, and ends with the largest exit code.
const standInSrun = `#!/bin/bash
while [[ $1 == --* ]]; do [[ $1 == --kill-on-bad-exit=0 || $1 == --wait=0 ]] || { echo "srun: $1" >&2; exit 2; }; shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=localhost SLURM_NODEID=0
pids=()
trap 'kill -USR1 "${pids[@]}"; again=1' USR1
trap 'kill -TERM "${pids[@]}"; again=1' TERM
for i in 0 1; do SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & pids+=($!); done
worst=0
for p in "${pids[@]}"; do
	again=1
	while [ -n "$again" ]; do again=; wait "$p"; code=$?; done
	[ $code -gt $worst ] && worst=$code
done
exit $worst
`

// cluster has what the job script calls: srun, scontrol, hcclrun, and gotrain, which is this program or prog.
type cluster struct{ dir, job string }

func newCluster(t *testing.T, gotrain string) cluster {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: job scripts of Slurm cannot be run")
	}
	c := cluster{t.TempDir(), fmt.Sprint(os.Getpid())}
	if gotrain == "" {
		gotrain = "exec env GOTRAIN_TEST_MAIN=1 '" + os.Args[0] + "' \"$@\"\n"
	}
	for name, text := range map[string]string{
		"srun": standInSrun, "gotrain": "#!/bin/sh\n" + gotrain, "scontrol": "#!/bin/sh\necho \"$@\" >>'" + c.dir + "/scontrol.log'\n",
		"hcclrun": "#!/bin/sh\nGOTRAIN_LAUNCHER=none exec \"$@\" --ranks 2\n",
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// sbatch is the job script as Slurm starts it.
func (c cluster) sbatch(t *testing.T, out *transcript.Buffer, env []string, args ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("../../deploy/slurm/gotrain.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{script}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.Env = append(append(os.Environ(), "PATH="+c.dir+":"+os.Getenv("PATH"), "SLURM_JOB_ID="+c.job, "SLURM_PROCID=0", "SLURM_NTASKS=2"), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// asked is what the script has asked of Slurm.
func (c cluster) asked() string {
	text, _ := os.ReadFile(filepath.Join(c.dir, "scontrol.log"))
	return string(text)
}

func codeOf(cmd *exec.Cmd) int {
	if err := cmd.Wait(); errors.As(err, new(*exec.ExitError)) || err == nil {
		return cmd.ProcessState.ExitCode()
	}
	return -1
}

// Near the time limit a job saves and goes back into the queue; started again, it resumes from there.
func TestSlurmRequeues(t *testing.T) {
	for _, launcher := range []string{"srun", "none", "hcclrun"} {
		t.Run(launcher, func(t *testing.T) {
			recipe, dir := tinyRecipe(t)
			c := newCluster(t, "")
			args := []string{recipe, "--set", "run.output_dir=" + dir}
			var out transcript.Buffer
			cmd := c.sbatch(t, &out, []string{"LAUNCHER=" + launcher}, append(args, "--set", "run.steps=100000", "--set", "checkpoint.every_steps=0")...)
			out.WaitFor(t, "Step 2/", 1)
			_ = cmd.Process.Signal(syscall.SIGUSR1) // #SBATCH --signal=B:USR1@180
			if code := codeOf(cmd); code != 0 || c.asked() != "requeue "+c.job+"\n" || !strings.Contains(out.String(), "saved; the job is queued again") {
				t.Fatalf("code %d, asked %q\n%s", code, c.asked(), tail(out.String()))
			}
			at := regexp.MustCompile(`the checkpoint of step (\d+) is in`).FindStringSubmatch(out.String())
			if at == nil {
				t.Fatal(tail(out.String()))
			}
			var next transcript.Buffer
			var last int
			fmt.Sscan(at[1], &last)
			cmd = c.sbatch(t, &next, []string{"LAUNCHER=" + launcher, "SLURM_RESTART_COUNT=1"}, append(args, "--set", fmt.Sprint("run.steps=", last+2))...)
			if code := codeOf(cmd); code != 0 || c.asked() != "requeue "+c.job+"\n" || !strings.Contains(next.String(), "resumed at step "+at[1]+" of") {
				t.Errorf("code %d, asked %q\n%s", code, c.asked(), tail(next.String()))
			}
		})
	}
}

// scancel and preemption tell the ranks and the shell: the job saves, and Slurm decides whether it runs again.
func TestSlurmIsNotContradicted(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	c := newCluster(t, "")
	var out transcript.Buffer
	cmd := c.sbatch(t, &out, nil, recipe, "--set", "run.output_dir="+dir, "--set", "run.steps=100000")
	out.WaitFor(t, "Step 2/", 1)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if code := codeOf(cmd); code != launch.ExitStopped || c.asked() != "" || !strings.Contains(out.String(), "the checkpoint of step") {
		t.Errorf("code %d, asked %q\n%s", code, c.asked(), tail(out.String()))
	}
}

// Only 75 is queued again, a limited number of times; every other code reaches Slurm as it is.
func TestSlurmExitCodes(t *testing.T) {
	for _, info := range launch.Codes() {
		c := newCluster(t, fmt.Sprintf("exit %d\n", info.Code))
		var out transcript.Buffer
		code := codeOf(c.sbatch(t, &out, nil, "my.toml"))
		if again := c.asked() != ""; again != (info.Code == launch.ExitStopped) || !again && code != info.Code {
			t.Errorf("code %d became %d, asked %q\n%s", info.Code, code, c.asked(), out.String())
		}
	}
	c := newCluster(t, "exit 75\n")
	var out transcript.Buffer
	if code := codeOf(c.sbatch(t, &out, []string{"SLURM_RESTART_COUNT=3", "MAX_REQUEUES=3"}, "my.toml")); code != 75 || c.asked() != "" {
		t.Errorf("started without end: code %d, asked %q\n%s", code, c.asked(), out.String())
	}
	if code := codeOf(c.sbatch(t, &out, []string{"LAUNCHER=mine"}, "my.toml")); code != launch.ExitUsage {
		t.Errorf("unknown launcher: code %d", code)
	}
	if code := codeOf(c.sbatch(t, &out, nil)); code != launch.ExitUsage {
		t.Errorf("no recipe: code %d", code)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "scontrol"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(c.sbatch(t, &out, nil, "my.toml")); code != 75 || !strings.Contains(out.String(), "the same sbatch command resumes") {
		t.Errorf("Slurm refuses: code %d\n%s", code, out.String())
	}
}

// What the script needs of Slurm stands in its first comment lines, which is where sbatch reads it.
func TestSlurmDirectives(t *testing.T) {
	text, err := os.ReadFile("../../deploy/slurm/gotrain.sbatch")
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(text, []byte("set -u\n"))
	for _, want := range []string{"--requeue", "--open-mode=append", "--signal=B:USR1@180", "--ntasks-per-node=8", "--output=%x-%j.log"} {
		if !bytes.Contains(head, []byte("\n#SBATCH "+want+"\n")) {
			t.Errorf("no #SBATCH %s before the first command", want)
		}
	}
}
