package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
	"github.com/gotrain/gotrain/internal/transcript"
)

// hostsJob is a job whose ranks are started by hand on several hosts: network namespaces, or one machine that the variables divide.
type hostsJob struct {
	t      *testing.T
	recipe string
	nodeOf []int
	in     []string // of each node: the network namespace; nil: none
	addr   string   // of rank 0

	extra func(rank int) string // an argument of a rank, or nil
}

// freePort is a port that nobody listens on.
func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts all ranks.
func (j *hostsJob) start(dir string, sets ...string) (ranks []*exec.Cmd, says []*transcript.Buffer) {
	j.t.Helper()
	port, size, nodes := freePort(j.t), map[int]int{}, 0
	for _, n := range j.nodeOf {
		size[n]++
		nodes = max(nodes, n+1)
	}
	args := []string{"run", j.recipe, "--set", "run.output_dir=" + dir, "--set", "train.threads_per_rank=1"}
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	local := map[int]int{}
	for r, n := range j.nodeOf {
		cmd := program(j.t, args...)
		if j.extra != nil {
			cmd.Args = append(cmd.Args, j.extra(r))
		}
		if j.in != nil {
			cmd.Args = append([]string{"ip", "netns", "exec", j.in[n], cmd.Path}, cmd.Args[1:]...)
			ip, err := exec.LookPath("ip")
			if err != nil {
				j.t.Fatal(err)
			}
			cmd.Path = ip
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOTRAIN_RANK=%d", r), fmt.Sprintf("GOTRAIN_WORLD_SIZE=%d", len(j.nodeOf)),
			fmt.Sprintf("GOTRAIN_LOCAL_RANK=%d", local[n]), fmt.Sprintf("GOTRAIN_LOCAL_WORLD_SIZE=%d", size[n]), fmt.Sprintf("GOTRAIN_NODE_RANK=%d", n),
			fmt.Sprintf("GOTRAIN_NODES=%d", nodes),
			"GOTRAIN_JOB_ID=hosts-test", "GOTRAIN_MASTER_ADDR="+j.addr, fmt.Sprintf("GOTRAIN_MASTER_PORT=%d", port),
			"GOTRAIN_JOB_TOKEN=0123456789abcdef0123456789abcdef")
		local[n]++
		say := &transcript.Buffer{}
		cmd.Stdout, cmd.Stderr = say, say
		if err := cmd.Start(); err != nil {
			j.t.Fatal(err)
		}
		ranks, says = append(ranks, cmd), append(says, say)
	}
	return ranks, says
}

// run runs the job to its end, and returns what rank 0 said.
func (j *hostsJob) run(dir string, sets ...string) string {
	j.t.Helper()
	ranks, says := j.start(dir, sets...)
	for r, cmd := range ranks {
		if err := cmd.Wait(); err != nil {
			j.t.Errorf("rank %d: %v\n%s", r, err, says[r])
		}
	}
	if j.t.Failed() {
		j.t.FailNow()
	}
	return says[0].String()
}

// weights are those of the newest checkpoint.
func weights(t *testing.T, dir string) string {
	t.Helper()
	latest, err := os.ReadFile(filepath.Join(dir, "checkpoints", "latest"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "checkpoints", strings.TrimSpace(string(latest)))
	all := path[len(path)-8:]
	for _, f := range []string{"model.safetensors", "optimizer.safetensors"} {
		b, err := os.ReadFile(filepath.Join(path, f))
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	return all
}

const hostsSteps = "run.steps=8"

// One rank a host sums in the order of ranks, as shared memory does, so the weights are equal bit by bit. Several sum host by host.
func TestHostsTrainLikeOneMachine(t *testing.T) {
	recipe, base := tinyRecipe(t)
	for _, n := range []int{2, 4} {
		one := fmt.Sprint(base, n)
		cmd := program(t, "run", recipe, "-n", fmt.Sprint(n), "--set", "run.output_dir="+one, "--set", "train.threads_per_rank=1", "--set", hostsSteps)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		hosts := []int{0, 1, 2, 3}[:n]
		j := &hostsJob{t: t, recipe: recipe, nodeOf: hosts, addr: "127.0.0.1"}
		dir := fmt.Sprint(base, "hosts", n)
		says := j.run(dir, hostsSteps)
		if weights(t, dir) != weights(t, one) {
			t.Errorf("%d hosts train to other weights than %d ranks of one machine", n, n)
		}
		if want := fmt.Sprintf("%d ranks on %d hosts, ", n, n); !strings.Contains(says, want) || !strings.Contains(says, "topology auto: exchange below ") {
			t.Errorf("no %q in\n%s", want, says)
		}
	}
	for _, nodeOf := range [][]int{{0, 0, 1, 1}, {0, 1, 1, 1}} {
		j := &hostsJob{t: t, recipe: recipe, nodeOf: nodeOf, addr: "127.0.0.1"}
		first, second := fmt.Sprint(base, "a", nodeOf[1]), fmt.Sprint(base, "b", nodeOf[1])
		says := j.run(first, hostsSteps)
		j.run(second, hostsSteps)
		if weights(t, first) != weights(t, second) {
			t.Errorf("%v: two runs differ", nodeOf)
		}
		if !strings.Contains(says, "4 ranks on 2 hosts, ") || !strings.Contains(says, "shared memory") {
			t.Errorf("%v:\n%s", nodeOf, says)
		}
	}
}

// With several ranks a host a codec works between hosts; a run that ends and goes on has the weights of one that did not end.
func TestHostsTrainEncoded(t *testing.T) {
	recipe, base := tinyRecipe(t)
	j := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, addr: "127.0.0.1"}
	encoded := []string{"comm.compress=int8", "comm.compress_warmup_steps=1", "comm.compress_block=32"}
	straight, dir := base+"straight", base+"parts"
	if says := j.run(straight, append(encoded, hostsSteps)...); strings.Contains(says, "compress = int8") {
		t.Errorf("a warning of int8:\n%s", says)
	}
	j.run(dir, append(encoded, "run.steps=5")...)
	j.run(dir, append(encoded, hostsSteps)...)
	if weights(t, dir) != weights(t, straight) {
		t.Error("a run that went on has other weights")
	}
}

// killed checks that a job whose rank is killed ends on all hosts with the rank's name, and goes on bit by bit as if nothing had been.
func killed(t *testing.T, j *hostsJob, base string, victim int) {
	t.Helper()
	sets := []string{"run.steps=120", "checkpoint.every_steps=20", "checkpoint.keep_last=3", "log.every_steps=20"}
	straight := base + "straight"
	j.run(straight, sets...)

	dir := base + "killed"
	ranks, says := j.start(dir, sets...)
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(says[0].String(), "Checkpoint of step 20:") {
		if time.Now().After(deadline) {
			t.Fatalf("no checkpoint:\n%s", says[0])
		}
		time.Sleep(time.Millisecond)
	}
	if err := ranks[victim].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for r, cmd := range ranks {
		err := cmd.Wait()
		if r == victim {
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitUnavailable {
			t.Errorf("rank %d ends with %d (%v)\n%s", r, code, err, says[r])
		}
		if want := fmt.Sprintf("rank %d is gone", victim); !strings.Contains(says[r].String(), want) {
			t.Errorf("rank %d does not say %q:\n%s", r, want, says[r])
		}
	}
	if took := time.Since(begin); took > 20*time.Second { // it takes half a second; a machine under load may need more
		t.Errorf("the others ended after %v", took)
	}
	if says := j.run(dir, sets...); !strings.Contains(says, "resume") {
		t.Errorf("the run does not say that it resumed:\n%s", says)
	}
	if weights(t, dir) != weights(t, straight) {
		t.Error("a killed and resumed run has other weights than one that was not interrupted")
	}
}

func TestKilledRankOnOtherHost(t *testing.T) {
	recipe, base := tinyRecipe(t)
	killed(t, &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, addr: "127.0.0.1"}, base, 3)
	// Another placement sums in another order, and the run says so.
	j := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 1, 0, 1}, addr: "127.0.0.1"}
	says := j.run(base+"killed", "run.steps=124", "checkpoint.every_steps=20")
	if want := "sums of gradients are made in another order"; !strings.Contains(says, want) {
		t.Errorf("no %q in\n%s", want, says)
	}
}

// The launcher's variables say that each rank has a host of its own, but they are on one, and nothing divides it: each rank says so.
func TestHostsThatAreOne(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	port := freePort(t)
	var ranks []*exec.Cmd
	var says []*transcript.Buffer
	for r := range 2 {
		cmd := program(t, "run", recipe, "--set", "run.output_dir="+dir)
		cmd.Env = append(cmd.Env, fmt.Sprintf("RANK=%d", r), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1",
			fmt.Sprintf("MASTER_PORT=%d", port),
			"GOTRAIN_JOB_ID=hosts-one")
		say := &transcript.Buffer{}
		cmd.Stdout, cmd.Stderr = say, say
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ranks, says = append(ranks, cmd), append(says, say)
	}
	for r, cmd := range ranks {
		_ = cmd.Wait() // the code is looked at
		want := "are both local rank 0\nhint: if they belong to different nodes, give them different node ranks"
		if code := cmd.ProcessState.ExitCode(); code != launch.ExitUnavailable || !strings.Contains(says[r].String(), want) {
			t.Errorf("rank %d: code %d\n%s", r, code, says[r])
		}
	}
}

// Hosts that cannot do what the recipe wants, and ranks with other words for their links, are refused with a sentence on every rank.
func TestHostsRefused(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	for _, c := range []struct {
		sets  []string
		extra func(rank int) string
		code  int
		want  string
	}{
		{[]string{"comm.transport=shm"}, nil, launch.ExitUnavailable, "cannot share memory"},
		{nil, func(r int) string { return fmt.Sprintf("--set=comm.streams=%d", 1+r) }, launch.ExitInternal, "ranks disagree on how they exchange data"},
		{nil, func(r int) string { return fmt.Sprintf("--set=train.clip_norm=%d", 1+r) }, launch.ExitInternal,
			"train.clip_norm = 1.0 on rank 0, but train.clip_norm = 2.0 on rank 1"},
	} {
		j := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 1}, addr: "127.0.0.1", extra: c.extra}
		ranks, says := j.start(dir, c.sets...)
		for r, cmd := range ranks {
			_ = cmd.Wait() // the code is looked at
			if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(says[r].String(), c.want) {
				t.Errorf("rank %d: code %d, want %d and %q\n%s", r, code, c.code, c.want, says[r])
			}
		}
	}
}

// A rank that cannot start, after all have met, ends the start of all.
func TestHostsStartFails(t *testing.T) {
	recipe, dir := tinyRecipe(t)
	j := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, addr: "127.0.0.1", extra: func(r int) string {
		if r == 3 {
			return "--set=data.synthetic_samples=3" // fewer than a batch
		}
		return "--set=data.synthetic_samples=64"
	}}
	ranks, says := j.start(dir)
	for r, cmd := range ranks {
		if err := cmd.Wait(); err == nil {
			t.Errorf("rank %d ends well", r)
		}
		if r != 3 && !strings.Contains(says[r].String(), "rank 3 is gone: train") {
			t.Errorf("rank %d does not name rank 3:\n%s", r, says[r])
		}
	}
}

// The same over a network: two namespaces, whose kernel is one, so that the launcher's node numbers divide them.
func TestHostsInNamespaces(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	in := namespaces(t)
	recipe, base := tinyRecipe(t)
	killed(t, &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, in: in, addr: "10.98.0.1"}, base+"four", 2)
	here := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, addr: "127.0.0.1"}
	there := &hostsJob{t: t, recipe: recipe, nodeOf: []int{0, 0, 1, 1}, in: in, addr: "10.98.0.1"}
	here.run(base+"here", hostsSteps)
	there.run(base+"there", hostsSteps)
	if weights(t, base+"here") != weights(t, base+"there") {
		t.Error("the weights depend on the network")
	}
}

// namespaces makes two hosts that are connected by a cable.
func namespaces(t *testing.T) []string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need ip")
	}
	var in []string
	for i := range 2 {
		name := fmt.Sprintf("nodes%d-%d", os.Getpid(), i)
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() }) // nothing is left if it fails: the test ends
		in = append(in, name)
	}
	for _, line := range []string{
		"-n " + in[0] + " link add eth0 type veth peer name eth0 netns " + in[1],
		"-n " + in[0] + " addr add 10.98.0.1/24 dev eth0", "-n " + in[1] + " addr add 10.98.0.2/24 dev eth0",
		"-n " + in[0] + " link set eth0 up", "-n " + in[1] + " link set eth0 up", "-n " + in[0] + " link set lo up", "-n " + in[1] + " link set lo up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	return in
}
