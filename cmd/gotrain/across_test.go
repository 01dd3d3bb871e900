package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// ownNet makes addresses and job numbers those of this run: the ranks of another one may share memory under the same names.
var ownNet = strings.NewReplacer("10.78.0.", fmt.Sprintf("10.%d.%d.", os.Getpid()>>8&255, os.Getpid()&255), "JOB_ID=77", fmt.Sprint("JOB_ID=", os.Getpid()))

// hosts makes two network namespaces with the addresses 10.78.0.1 and 10.78.0.2. It returns what their names begin with, before 0 and 1, and a command that
// stands for ssh.
func hosts(t *testing.T) (name, rsh string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	name = fmt.Sprintf("across%d-", os.Getpid()) // of this run: another may be going on
	ip := func(line string) {
		line = ownNet.Replace(strings.ReplaceAll(line, "NS", name))
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
	for i := range 2 {
		ip(fmt.Sprintf("netns add NS%d", i))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", fmt.Sprint(name, i)).Run() })
	}
	for _, line := range []string{
		"link add veth0 netns NS0 type veth peer name veth0 netns NS1",
		"-n NS0 addr add 10.78.0.1/24 dev veth0", "-n NS1 addr add 10.78.0.2/24 dev veth0",
		"-n NS0 link set veth0 up", "-n NS1 link set veth0 up", "-n NS0 link set lo up", "-n NS1 link set lo up",
	} {
		ip(line)
	}
	rsh = filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nn=" + name + "$((${1##*.}-1)); shift\nexec ip netns exec $n sh -c \"$*\"\n"
	if err := os.WriteFile(rsh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return name, rsh
}

// Two hosts with two ranks each train, whatever starts them; the losses of the last step are the same.
func TestTwoHostsUnderEveryConvention(t *testing.T) {
	ns, rsh := hosts(t)
	type process struct {
		host int
		env  string
		pre  string // command in front of gotrain
	}
	// each makes one process for each host or rank.
	each := func(n int, make func(i int) process) (out []process) {
		for i := range n {
			out = append(out, make(i))
		}
		return out
	}
	file := filepath.Join(t.TempDir(), "meet")
	losses := map[string]string{}
	for name, all := range map[string][]process{
		"Ascend operator": each(2, func(i int) process {
			return process{i, fmt.Sprintf("RANK=%d WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 LOCAL_RANK=0,1 MASTER_ADDR=10.78.0.1 MASTER_PORT=2222", i), ""}
		}),
		"PyTorchJob": each(2, func(i int) process {
			return process{i, fmt.Sprintf("PET_NNODES=2 PET_NPROC_PER_NODE=2 PET_NODE_RANK=%d PET_MASTER_ADDR=10.78.0.1 PET_MASTER_PORT=23456", i), ""}
		}),
		"Volcano": each(2, func(i int) process {
			return process{i, fmt.Sprintf("VC_TASK_INDEX=%d RANK=%d WORLD_SIZE=2 MASTER_ADDR=10.78.0.1 MASTER_PORT=23457", i, i), ""}
		}),
		"by hand": each(4, func(i int) process {
			return process{i / 2, fmt.Sprintf("RANK=%d WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.78.0.1 MASTER_PORT=29501", i), ""}
		}),
		"file": each(4, func(i int) process {
			return process{i / 2, fmt.Sprintf("RANK=%d WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 GOTRAIN_RENDEZVOUS=file://%s", i, file), ""}
		}),
		"Slurm": each(4, func(i int) process {
			return process{i / 2, fmt.Sprintf("SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=%d SLURM_LOCALID=%d SLURM_NODEID=%d SLURM_STEP_NUM_TASKS=4 "+
				"SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_STEP_NODELIST=10.78.0.1,10.78.0.2", i, i%2, i/2), ""}
		}),
		"mpirun": {{0, "", "mpirun --allow-run-as-root --mca plm_rsh_agent " + rsh + " --mca oob_tcp_if_include 10.78.0.0/24 -x GOTRAIN_TEST_MAIN=1 " +
			"-np 4 -H 10.78.0.1:2,10.78.0.2:2"}},
		"torchrun": each(2, func(i int) process {
			return process{i, "", fmt.Sprintf("%s --nproc_per_node=2 --nnodes=2 --node_rank=%d --master_addr=10.78.0.1 --master_port=29500 --no_python",
				os.Getenv("GOTRAIN_TEST_TORCHRUN"), i)}
		}),
	} {
		if out, err := exec.Command("mpirun", "--version").CombinedOutput(); name == "mpirun" && (err != nil || !strings.Contains(string(out), "Open MPI")) ||
			name == "torchrun" && os.Getenv("GOTRAIN_TEST_TORCHRUN") == "" {
			t.Logf("%s is not installed", name)
			continue
		}
		recipe, dir := tinyRecipe(t)
		texts := make([]string, len(all))
		var wg sync.WaitGroup
		for i, p := range all {
			cmd := program(t, "run", recipe, "--set", "run.output_dir="+dir)
			line := strings.Fields(ownNet.Replace(fmt.Sprintf("ip netns exec %s%d %s", ns, p.host, p.pre)))
			cmd.Args = append(line, cmd.Args...)
			cmd.Env = append(cmd.Env, strings.Fields(ownNet.Replace(p.env))...)
			var err error
			if cmd.Path, err = exec.LookPath("ip"); err != nil {
				t.Skip(err)
			}
			wg.Go(func() {
				out, err := cmd.CombinedOutput()
				texts[i] = fmt.Sprintf("%s\n(%v)\n", out, err)
			})
		}
		wg.Wait()
		text := strings.Join(texts, "")
		m := regexp.MustCompile(`\[Node 0, Rank 0/4\] Step 4/4: loss=(\S+)`).FindStringSubmatch(text)
		if m == nil || !strings.Contains(text, "4 ranks on 2 hosts, ") || strings.Count(text, "(<nil>)") != len(all) {
			t.Errorf("%s:\n%s", name, tail(text))
			continue
		}
		losses[m[1]] += name + " "
	}
	if len(losses) > 1 {
		t.Errorf("the loss depends on who starts the ranks: %v", losses)
	}
}
