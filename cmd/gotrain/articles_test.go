package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/comm/hccl/settings"
	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/recipes"
)

// What the articles set, as it stands there, for a run of two ranks. The machines of their examples (192.168.1.10, …) are replaced by this one.
func TestTheArticlesVariables(t *testing.T) {
	for _, c := range []struct {
		env  string
		code int
		want string // a regular expression
	}{
		{"HCCL_TOPOLOGY=mesh", 0, `note: comm.topology = "mesh" from the environment \(HCCL_TOPOLOGY=mesh\)`},
		{"HCCL_TOPOLOGY=tree", 0, `note: comm.topology = "tree" from the environment \(HCCL_TOPOLOGY=tree\)`},
		{"HCCL_TOPOLOGY=star", launch.ExitUsage, `HCCL_TOPOLOGY=star in the environment: unknown value\nhint: use mesh, tree, ring or auto`},
		{"HCCL_BUFFER_SIZE=268435456", 0, `note: HCCL_BUFFER_SIZE=268435456 has no effect between hosts`},
		{"HCCL_GRAD_COMPRESS=fp16", 0, `note: comm.compress = "f16" from the environment \(HCCL_GRAD_COMPRESS=fp16\)`},
		{"HCCL_GRAD_COMPRESS=int8", 0, `note: comm.compress = "int8" from the environment \(HCCL_GRAD_COMPRESS=int8\)`},
		{"HCCL_TIMEOUT=300", 0, `note: train.collective_timeout_seconds = 300.0 from the environment \(HCCL_TIMEOUT=300\)\n` +
			`note: comm.start_timeout_seconds = 300.0 from the environment`},
		// init_method=tcp://224.0.0.1:23456
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=224.0.0.1 MASTER_PORT=23456", launch.ExitUsage,
			`MASTER_ADDR: 224.0.0.1 is a multicast address, to which nobody can connect\nhint: give the address of rank 0`},
		// [Node 0, Rank 0/63] Step 1/100: … comm_time=0.12s compute_time=0.38s
		{"", 0, `\[Node 0, Rank 0/2\] Step 1/\d+: loss=\S+ .* comm_time=\d+\.\d+s compute_time=\d+\.\d+s`},
	} {
		recipe, out := tinyRecipe(t)
		cmd := program(t, "run", recipe, "--ranks", "2", "--set", "run.steps=1", "--set", "run.output_dir="+out, "--set", "checkpoint.enabled=false")
		cmd.Env = append(cmd.Env, strings.Fields(c.env)...)
		text, err := cmd.CombinedOutput()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		if code != c.code || !regexp.MustCompile(c.want).Match(text) || strings.Count(string(text), "note: ") > 2 {
			t.Errorf("%s: exit code %d, want %d and %s\n%s", c.env, code, c.code, c.want, tail(string(text)))
		}
	}
}

// RANK and WORLD_SIZE by hand, without LOCAL_RANK: rank=int(os.environ["RANK"]), as the articles' scripts read them.
func TestTheArticlesRanksByHand(t *testing.T) {
	recipe, out := tinyRecipe(t)
	done := make(chan string, 2)
	for rank := range 2 {
		cmd := program(t, "run", recipe, "--set", "run.steps=2", "--set", "run.output_dir="+out)
		cmd.Env = append(cmd.Env, fmt.Sprintf("RANK=%d", rank), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500",
			"GOTRAIN_JOB_ID="+filepath.Base(out)+filepath.Base(filepath.Dir(out)))
		go func() {
			text, err := cmd.CombinedOutput()
			done <- fmt.Sprint(string(text), err)
		}()
	}
	if text := <-done + <-done; !strings.Contains(text, "[Node 0, Rank 0/2] Step 2/2") || !strings.HasSuffix(text, "<nil>") {
		t.Error(tail(text))
	}
}

// The article's line, under the real torchrun: torchrun --nproc_per_node=… --nnodes=… --node_rank=0 --master_addr=… --master_port=… --no_python gotrain run.
func TestTheArticlesTorchrun(t *testing.T) {
	torchrun := os.Getenv("GOTRAIN_TEST_TORCHRUN")
	if torchrun == "" {
		torchrun = "torchrun"
	}
	if err := exec.Command(torchrun, "--nproc_per_node=1", "--master_port=0", "--no_python", "true").Run(); err != nil {
		t.Skipf("torchrun does not start a program (%v); GOTRAIN_TEST_TORCHRUN names another one", err)
	}
	recipe, out := tinyRecipe(t)
	port := 20000 + os.Getpid()%10000
	line := fmt.Sprintf("--nproc_per_node=2 --nnodes=1 --node_rank=0 --master_addr=127.0.0.1 --master_port=%d --no_python", port)
	cmd := program(t, "run", recipe, "--set", "run.steps=2", "--set", "run.output_dir="+out)
	cmd.Args = append(append([]string{torchrun}, strings.Fields(line)...), cmd.Args...)
	var err error
	if cmd.Path, err = exec.LookPath(torchrun); err != nil {
		t.Fatal(err)
	}
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "[Node 0, Rank 0/2] Step 2/2") {
		t.Errorf("%v\n%s", err, tail(string(text)))
	}
}

// The article's YAML as a recipe: two words are keys, the others belong to the launcher, and each is told where.
func TestTheArticlesYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "article.toml")
	text := "nnodes = 8\nnode_rank = 0\nmaster_addr = \"192.168.1.10\"\nmaster_port = 29500\nnpu_count = 8\nhccl_topology = \"mesh\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := cli(t, "run", path)
	for i, want := range []string{"give --nnodes to hcclrun", "give --node_rank to hcclrun", "give --master_addr to hcclrun", "give --master_port to hcclrun",
		"did you mean train.ranks?", "did you mean comm.topology?"} {
		if !strings.Contains(errs, fmt.Sprintf("article.toml:%d: ", i+1)) || !strings.Contains(errs, want) {
			t.Errorf("line %d: no %q in\n%s", i+1, want, errs)
		}
	}
	if code != launch.ExitRecipe {
		t.Errorf("exit code %d", code)
	}
}

// hccl_test's command line, with mpirun in front and gotrain in place of ./bin/all_reduce_test.
func TestTheArticlesBenchmark(t *testing.T) {
	mpirun := openMPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, mpirun, append(strings.Fields("--oversubscribe --allow-run-as-root -x GOTRAIN_TEST_MAIN=1 -n 2 "+os.Args[0]+" bench"),
		strings.Fields("all_reduce_test -b 8K -e 64K -f 2 -d fp32 -o sum -n 2 -p 2")...)...)
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`(?m)^ *65536 +16384 +f32 +sum `).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
}

// What recipes take from the environment and what HCCL's settings make of it agree: a word is known to both or to neither. Only NPUs cannot take int8.
func TestWordsMeanTheSameWithNPUs(t *testing.T) {
	for name, list := range map[string]string{
		"HCCL_TOPOLOGY":      "mesh fullmesh auto tree ring star Mesh hd",
		"HCCL_GRAD_COMPRESS": "fp16 float16 f16 bf16 bfloat16 FP16 none off 0 zip 1 int4",
		"HCCL_TIMEOUT":       "300 1 0 -5 10m 1e3 99999999999",
		"HCCL_BUFFER_SIZE":   "268435456 1 0 200M 1e9 -1",
	} {
		for _, word := range append(strings.Fields(list), "") {
			r, err := recipes.Decode("[run]\nsteps = 1\n[data]\nkind = \"synthetic\"", "r")
			if err != nil {
				t.Fatal(err)
			}
			ours := r.Environ(launch.LookupIn([]string{name + "=" + word}))
			_, theirs := settings.Read(settings.Input{Env: map[string]string{name: word}, Ranks: 8})
			if (ours == nil) != (theirs == nil) || launch.ExitCode(ours) != launch.ExitCode(theirs) && ours != nil {
				t.Errorf("%s=%s: %v, but with NPUs %v", name, word, ours, theirs)
			}
		}
	}
}
