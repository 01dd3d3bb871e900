package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

var update = flag.Bool("update", false, "rewrite golden files; look at the difference before committing it")

// The test binary is gotrain itself where GOTRAIN_TEST_MAIN is set, so ranks can be started from it.
func TestMain(m *testing.M) {
	if os.Getenv("GOTRAIN_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// cli runs gotrain in this process.
func cli(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return out.String(), errs.String(), code
}

// program is gotrain as a process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GOTRAIN_TEST_MAIN=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it after: go test ./cmd/gotrain -update\n got %s\nwant %s", path, got, want)
	}
}

// The command line is a promise: its help is checked in.
func TestHelp(t *testing.T) {
	for _, verb := range []string{"", "run", "validate", "plan", "eval", "recipes", "recipes list", "recipes show", "recipes copy", "inspect", "version",
		"predict", "data", "data check", "data stats", "bench", "bench allreduce", "bench broadcast", "bench step", "bench data"} {
		out, errs, code := cli(t, append(strings.Fields(verb), "--help")...)
		if code != 0 || errs != "" {
			t.Errorf("%s --help: code %d, %s", verb, code, errs)
		}
		if !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help has no examples", verb)
		}
		golden(t, strings.ReplaceAll(strings.TrimSpace("help "+verb), " ", "-")+".txt", out)
	}
	if out, _, code := cli(t); code != 0 || !strings.Contains(out, "Exit codes:\n    0  done\n") {
		t.Errorf("gotrain alone: code %d\n%s", code, out)
	}
}

// Whatever is wrong is said once, on stderr, with the right exit code.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	bad := write("bad.toml", "[run]\nepochs = 1\nstpes = 2\n[data]\nroot = \"x\"\n[train]\nranks = 0\ndtype = \"f64\"\n")
	missing := write("missing.toml", "[run]\nsteps = 1\n[data]\nroot = \"no-such-data\"\n")
	empty := filepath.Join(dir, "empty")
	if err := os.MkdirAll(filepath.Join(empty, "train"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"frobnicate", 64, `unknown command "frobnicate" for "gotrain"`},
		{"recipes lst", 64, `unknown command "lst"`},
		{"run", 64, "accepts 1 arg(s), received 0"},
		{"run a b", 64, "accepts 1 arg(s), received 2"},
		{"run quickstart --rank 2", 64, "unknown flag: --rank"},
		{"run quickstart --ranks two", 64, `invalid argument "two"`},
		{"validate quickstart --resolved --json", 64, "none of the others can be"},
		{"run quickstrat", 78, `quickstrat: no such recipe (did you mean "quickstart"?`},
		{"run " + bad, 78, bad + ":3: run.stpes: unknown key (did you mean \"steps\"?)\n" +
			bad + ":7: train.ranks: must be at least 1, got 0\n" + bad + ":8: train.dtype: unknown value \"f64\""},
		{"validate " + bad, 78, "recipes: 3 problems"},
		{"plan quickstart --set optim.lr=-1", 78, "--set: optim.lr: must be above 0, got -1"},
		{"run " + missing + " --ranks 2", 66, `no data set "no-such-data"; searched`},
		{"validate " + missing, 66, `no data set "no-such-data"; searched`},
		{"validate resnet50 --set data.root=" + empty, 66, "empty"},
		{"validate quickstart --set model.classes=3", 78, "model.classes = 3, but idx"},
		{"inspect " + dir + "/nothing", 66, "no checkpoint: "},
		{"inspect " + empty, 66, "checkpoint"},
		{"eval " + empty, 66, "checkpoint"},
		{"recipes show nothing", 66, `no recipe "nothing" in the binary`},
		{"recipes copy quickstart " + bad, 74, "exists\nhint: give another file name"},
		{"docs nothing", 64, "recipes, exit-codes or man"},
		{"docs man", 64, "name a folder with --out"},
	} {
		out, errs, code := cli(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("gotrain %s: code %d, want %d; stdout %q; stderr\n%s\nwant %s", c.args, code, c.code, out, errs, c.want)
		}
		if strings.Count(errs, "gotrain: ") != 1 {
			t.Errorf("gotrain %s: the error is not said once:\n%s", c.args, errs)
		}
	}
}

func TestLauncherEnvironment(t *testing.T) {
	t.Setenv("RANK", "0")
	_, errs, code := cli(t, "run", "quickstart")
	if code != launch.ExitUsage || !strings.Contains(errs, "torchrun (RANK, WORLD_SIZE, LOCAL_RANK): WORLD_SIZE: not set") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

// Ranks of several machines need a place to meet.
func TestSeveralMachines(t *testing.T) {
	for k, v := range map[string]string{"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "", "GOTRAIN_MASTER_ADDR": ""} {
		t.Setenv(k, v)
	}
	_, errs, code := cli(t, "run", "quickstart", "--set", "run.output_dir="+t.TempDir())
	if code != launch.ExitUsage || !strings.Contains(errs, "MASTER_ADDR") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

func TestValidate(t *testing.T) {
	out, errs, code := cli(t, "validate", "quickstart", "-n", "1", "--set", "train.batch_per_rank=2")
	if code != 0 || out != "quickstart.toml is valid: 2,000 training and 500 held-out samples of 10 classes, global batch 2 on 1 ranks\n" ||
		errs != "warning: train.batch_per_rank: batch norm over 2 samples is very noisy\n" {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	out, _, code = cli(t, "validate", "quickstart", "--resolved")
	if code != 0 || !strings.HasPrefix(out, "[run]\nname = \"quickstart\"\n") {
		t.Errorf("code %d\n%s", code, out)
	}
	for args, want := range map[string]string{
		"quickstart": `"valid": true, "problems": [], "warnings": [], "data": "2,000 training and 500 held-out samples of 10 classes, global batch 50 on 2 ranks" }`,
		"quickstart --no-data --set optim.lrr=1 --set train.ranks=0": `"valid": false, "problems": [ ` +
			`{ "file": "--set", "key": "optim.lrr", "message": "unknown key", "hint": "did you mean \"lr\"?" }, ` +
			`{ "file": "--set", "key": "train.ranks", "message": "must be at least 1, got 0" } ], "warnings": [] }`,
	} {
		out, errs, code := cli(t, append([]string{"validate", "--json"}, strings.Fields(args)...)...)
		if got := strings.Join(strings.Fields(out), " "); got != "{ "+want || errs != "" {
			t.Errorf("%s: code %d\n%s\n%s", args, code, got, errs)
		}
	}
}

// A recipe that is not saved yet is checked as one in a file; only a run needs a file.
func TestStandardInput(t *testing.T) {
	for verb, want := range map[string]string{
		"validate": "gotrain: stdin:2: run.stpes: unknown key (did you mean \"steps\"?)\n", "plan": "gotrain: stdin:2: run.stpes: unknown key",
		"run": "not run: each rank reads it again\nhint:",
	} {
		cmd := program(t, verb, "-")
		cmd.Stdin = strings.NewReader("[run]\nstpes = 1\n")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", verb, err, out)
		}
	}
	cmd := program(t, "validate", "-", "-n", "3")
	cmd.Stdin = strings.NewReader(tiny)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "stdin is valid: 64 training and 13 held-out samples of 6 classes, global batch "+
		"12 on 3 ranks\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRecipes(t *testing.T) {
	out, _, _ := cli(t, "recipes")
	for _, n := range []string{"quickstart ", "resnet50 ", "resnet50-imagenet "} {
		if !strings.Contains("\n"+out, "\n"+n) {
			t.Errorf("no %q in\n%s", n, out)
		}
	}
	show, _, _ := cli(t, "recipes", "show", "quickstart")
	file := filepath.Join(t.TempDir(), "my.toml")
	out, errs, code := cli(t, "recipes", "copy", "quickstart", file)
	got, err := os.ReadFile(file)
	if code != 0 || err != nil || string(got) != show || !strings.HasPrefix(show, "# A small ResNet") || !strings.Contains(out, "gotrain run "+file) {
		t.Errorf("code %d, %v\n%s%s", code, err, out, errs)
	}
	if _, errs, code := cli(t, "validate", file); code != 0 {
		t.Errorf("the copy is not valid: %s", errs)
	}
}

// The plan has been looked at by hand: the parameters are torchvision's 25,557,032 less the classifier of 1000 plus that of 5.
func TestPlan(t *testing.T) {
	out, errs, code := cli(t, "plan", "resnet50", "--set", "train.device=ref", "--set", "train.batch_per_rank=1")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"23,518,277, 23,518,277 trained", "2 = 1 a rank x 1 accumulated x 2 ranks", "memory of a rank", "fc.weight", "learning rate"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, errs, code = cli(t, "plan", "deit-s", "--set", "train.device=ref", "--set", "train.ranks=2", "--set", "train.batch_per_rank=2")
	if code != 0 {
		t.Fatal(errs) // without ImageNet
	}
	for _, want := range []string{"22,050,664, 22,050,664 trained", "data.published_samples = 1,281,167",
		"optimizer     adamw betas=0.9,0.999", "drop path     0.1 in the last"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, errs, code = cli(t, "plan", "quickstart", "--set", "train.device=ref", "--json")
	var s struct {
		Steps  int `json:"steps"`
		Params int `json:"params"`
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 || s.Steps == 0 || s.Params == 0 {
		t.Errorf("code %d, %v, %+v\n%s", code, err, s, errs)
	}
}

func TestVersion(t *testing.T) {
	if out, _, code := cli(t, "--version"); code != 0 || !regexp.MustCompile(`^gotrain \S+\n$`).MatchString(out) {
		t.Errorf("code %d, %q", code, out)
	}
	if out, _, code := cli(t, "version", "--notices"); code != 0 || !strings.Contains(out, "gorgonia.org/gorgonia v") ||
		!strings.Contains(out, "Apache License") {
		t.Errorf("code %d, %.300q", code, out)
	}
	out, errs, code := cli(t, "version", "--json")
	var v versionInfo
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || v.Version == "" || v.Devices["ref"] == "" {
		t.Errorf("code %d, %v\n%s%s", code, err, out, errs)
	}
}

// tiny is a recipe that takes a moment on any device.
const tiny = `
[run]
steps = 4
[model]
depth = 18
width = 4
small_stem = true
classes = 6
[data]
kind = "synthetic"
image_size = 8
synthetic_samples = 64
synthetic_eval_samples = 13
[train]
ranks = 2
batch_per_rank = 4
device = "ref"
[schedule]
kind = "constant"
[checkpoint]
every_steps = 2
`

func tinyRecipe(t *testing.T) (recipe, out string) {
	t.Helper()
	dir := t.TempDir()
	recipe = filepath.Join(dir, "tiny.toml")
	if err := os.WriteFile(recipe, []byte(tiny), 0o644); err != nil {
		t.Fatal(err)
	}
	return recipe, filepath.Join(dir, "out")
}

// The whole way: two supervised ranks train, the checkpoint is sound, evaluates to what the run said, and the run goes on from it.
func TestRunInspectEval(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	out, err := program(t, "run", recipe, "--set", "run.output_dir="+dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"[Node 0, Rank 0/2] Step 4/4: loss=", "items=13/13"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, f := range []string{"metrics.jsonl", "recipe.toml"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
	ck := filepath.Join(dir, "checkpoints")
	in, errs, code := cli(t, "inspect", ck, "--tensors")
	for _, want := range []string{"step-00000004", "step-00000002", "step 4, epoch ", "conv1.weight", "2, micro-batch 4"} {
		if !strings.Contains(in, want) {
			t.Errorf("inspect: code %d, no %q in\n%s%s", code, want, in, errs)
		}
	}
	stored, _, _ := cli(t, "inspect", ck, "--recipe")
	if want, _ := os.ReadFile(filepath.Join(dir, "recipe.toml")); !strings.HasSuffix(string(want), "\n"+stored) || stored == "" {
		t.Errorf("the stored recipe is\n%s", stored)
	}
	// One rank must find what two ranks found: 13 samples, each once.
	raw, err := program(t, "eval", ck, "--ranks", "1", "--json").Output()
	var v, saved map[string]float64
	if err != nil || json.Unmarshal(raw, &v) != nil {
		t.Fatalf("eval: %v\n%s", err, raw)
	}
	js, _, _ := cli(t, "inspect", ck, "--json")
	var in2 struct {
		State struct {
			Metrics map[string]float64 `json:"metrics"`
		} `json:"state"`
	}
	if err := json.Unmarshal([]byte(js), &in2); err != nil {
		t.Fatal(err)
	}
	saved = in2.State.Metrics
	// Sums in float32 in another order: 13 terms of about 2 differ by less than 13 · 2 · 2^-24 · a few.
	if v["items"] != 13 || saved["items"] != 13 || v["top1"] != saved["top1"] || abs(v["loss"]-saved["loss"]) > 1e-5 {
		t.Errorf("eval says %v, the run said %v", v, saved)
	}
	out, err = program(t, "run", recipe, "--set", "run.output_dir="+dir, "--set", "run.steps=6").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Step 5/6") || strings.Contains(string(out), "Step 4/6") {
		t.Errorf("going on: %v\n%s", err, out)
	}
}

func abs(x float64) float64 { return max(x, -x) }

// A run that is asked to stop exits with 75 and leaves a checkpoint.
func TestStop(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for name, sig := range map[string]syscall.Signal{"term": syscall.SIGTERM, "usr1": syscall.SIGUSR1} {
		for _, ranks := range []string{"1", "2"} {
			t.Run(name+ranks, func(t *testing.T) {
				dir := filepath.Join(dir, name+ranks)
				cmd := program(t, "run", recipe, "-n", ranks, "--set", "run.output_dir="+dir, "--set", "run.steps=100000", "--set", "checkpoint.every_steps=0")
				var out transcript.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				out.WaitFor(t, "Step 2/", 1)
				cmd.Process.Signal(sig)
				cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != launch.ExitStopped || strings.Count(out.String(), "gotrain: stopped on request") != 1 {
					t.Errorf("code %d\n%s", code, tail(out.String()))
				}
				if _, errs, code := cli(t, "inspect", filepath.Join(dir, "checkpoints")); code != 0 {
					t.Error(errs)
				}
			})
		}
	}
}

// When a rank dies the others do not wait for ever, and the report names the one that died.
func TestKilledRank(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	cmd := program(t, "run", recipe, "--set", "run.output_dir="+dir, "--set", "run.steps=100000")
	var out transcript.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.WaitFor(t, "Step 2/", 1)
	victim := childWithRank(t, cmd.Process.Pid, 1)
	syscall.Kill(victim, syscall.SIGKILL)
	begin := time.Now()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 137 || !strings.Contains(out.String(), "rank 1 failed first: killed by SIGKILL") {
		t.Errorf("code %d\n%s", code, tail(out.String()))
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
}

// childWithRank finds the process of a rank among the children of the supervisor.
func childWithRank(t *testing.T, parent, rank int) int {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var pid, ppid int
		s := string(b)
		fmt.Sscan(s, &pid)
		var state string
		fmt.Sscan(s[strings.LastIndexByte(s, ')')+1:], &state, &ppid)
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if ppid == parent && bytes.Contains(env, fmt.Appendf(nil, "GOTRAIN_RANK=%d\x00", rank)) {
			return pid
		}
	}
	t.Fatalf("no rank %d below process %d", rank, parent)
	return 0
}

// openMPI is the path of Open MPI's mpirun; MPICH's has the same name and other options.
func openMPI(t *testing.T) string {
	t.Helper()
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("mpirun is not installed")
	}
	if v, err := exec.Command(mpirun, "--version").CombinedOutput(); err != nil || !strings.Contains(string(v), "Open MPI") {
		t.Skip("mpirun is not Open MPI's")
	}
	return mpirun
}

func TestUnderMpirun(t *testing.T) {
	mpirun := openMPI(t)
	recipe, dir := tinyRecipe(t)
	cmd := program(t)
	cmd.Path = mpirun
	cmd.Args = []string{"mpirun", "--oversubscribe", "-np", "2", os.Args[0], "run", recipe, "--set", "run.output_dir=" + dir, "--set", "train.ranks=1"}
	cmd.Env = append(cmd.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "[Node 0, Rank 0/2] Step 4/4: loss=") || !strings.Contains(string(out),
		"2 ranks, set by openmpi; train.ranks = 1 is ignored") {
		t.Errorf("%v\n%s", err, out)
	}
}
