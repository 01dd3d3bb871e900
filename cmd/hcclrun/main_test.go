package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The test binary plays hcclrun, and its agents.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == agentFlag, os.Getenv("GOTRAIN_TEST_HCCLRUN") != "" && len(os.Args) > 1:
		os.Unsetenv("GOTRAIN_TEST_HCCLRUN") // ranks are other programs
		main()
	}
	if signal.Ignored(syscall.SIGINT) { // by a shell that started the tests in the background; the processes of the tests would inherit that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	os.Unsetenv("GOMAXPROCS") // a launcher sets it only where the user did not
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	key := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string // parts of the options as %+v, separated by " & "; or the error behind "!"
	}{
		{"-n 2 true -n 3", "ranks:2 & argv:[true -n 3]"},
		{"-np=4 --grace 5s --no-pin true", "ranks:4 & grace:5000000000 & noPin:true"},
		{"--nproc 1 -- true --help", "ranks:1 & argv:[true --help] & help:false"},
		{"--num-proc 3 x", "ranks:3"},
		{"-H a:8,b:8 x", "hosts:a:8,b:8"},
		{"--hosts a x", "hosts:a "},
		{"-machinefile m x", "hostfile:m"},
		{"-f m -ppn 4 x", "hostfile:m & perNode:4"},
		{"--map-by ppr:4:node --bind-to none x", "perNode:4 & noPin:true"},
		{"--nproc_per_node=8 --nnodes=8 --node_rank=0 --master_addr=192.168.1.10 --master_port=29500 gotrain run R.toml",
			"nproc:8 & nnodes:8 & nodeRank:0 & master:192.168.1.10 & port:29500 & argv:[gotrain run R.toml]"},
		{"--nproc-per-node 8 --nnodes 8:8 --node-rank 7 --master-addr n1 x", "nproc:8 & nnodes:8 & nodeRank:7 & master:n1"},
		{"--rdzv_endpoint=n1:29400 --rdzv_id=77 --rdzv_backend=c10d --max_restarts=3 x", "endpoint:n1:29400 & id:77 & restarts:3"},
		{"-x A=1 -x B --env C=2 -genv D 4 -envlist E,F x", "env:[A=1 B C=2 D=4 E F]"},
		{"-p 2222 -i " + key + " x", "sshPort:2222 & sshKey:" + key},
		{"-i a:0,1@b x", "include:a:0,1@b & sshKey: "},
		{"--mca btl_tcp_if_include eth1 -mca pml ob1 x", "iface:eth1 & ignored:[--mca pml ob1]"},
		{"--allow-run-as-root --oversubscribe --prefix /usr x", "spread:true & ignored:[--allow-run-as-root --prefix /usr]"},
		{"--output-filename logs --tag-output x", "logs:logs & tagAll:true"},
		{"--start-timeout 90 x", "start:90000000000"},
		{"-n", "!-n needs a value"},
		{"-n two true", `!-n: needs a positive number of ranks, got "two"`},
		{"-n 0 true", `!-n: needs a positive number of ranks, got "0"`},
		{"-n 1 --grace soon true", `!--grace: needs a duration such as 30s, got "soon"`},
		{"-n 1 --wat true", "!unknown flag --wat"},
		{"--hostfil x", "!unknown flag --hostfil; did you mean --hostfile?"},
		{"--check=1 x", `!--check takes no value, got "1"`},
		{"--nnodes 1:4 x", "!--nnodes: 1:4 is a range"},
		{"--rdzv_backend etcd x", "!--rdzv_backend: there is no etcd here"},
		{"--map-by node x", "!--map-by: \"node\" would place consecutive ranks on different hosts"},
		{"-x GOTRAIN_JOB_TOKEN=1 x", "!-x: GOTRAIN_JOB_TOKEN is made by hcclrun"},
	} {
		o, err := parse(strings.Fields(c.args))
		if want, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", c.args, err, want)
			}
			continue
		}
		got := fmt.Sprintf("%+v", o)
		for part := range strings.SplitSeq(c.want, " & ") {
			if err != nil || !strings.Contains(got, part) {
				t.Errorf("%s: no %q in %s %v", c.args, part, got, err)
			}
		}
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"-n", "2", "sh", "-c", "sleep $GOTRAIN_RANK; echo $GOTRAIN_RANK of $GOTRAIN_WORLD_SIZE"}, 0, "0 of 2\n[rank 1] 1 of 2\n"},
		{[]string{"-n", "2", "sh", "-c", "[ $GOTRAIN_RANK = 0 ] || sleep 60; exit 7$GOTRAIN_RANK"}, 70, "failed first: exit code 7"},
		{[]string{"--help"}, 0, "Exit codes: that of the first rank that failed, 69 if a host cannot be used or is lost, and\n    0  done"},
		{[]string{"-y"}, 64, "hcclrun: unknown flag -y\nhint: hcclrun --help\n"},
		{[]string{"true"}, 64, "the number of ranks is missing: -n N"},
		{[]string{"-n", "2"}, 64, "no program to start"},
		{[]string{"-n", "1", "/no/such/program"}, 64, "cannot start /no/such/program: "},
		{[]string{"-n", "1", "--verbose", "true"}, 0, "hcclrun: without effect here: --verbose\n"},
		{[]string{"-n", "1", "-x", "NO_SUCH_VARIABLE", "true"}, 64, "-x NO_SUCH_VARIABLE: this variable is not set here"},
		{[]string{"-n", "1", "-x", "MINE=7", "sh", "-c", "echo mine $MINE"}, 0, "mine 7"},
		{[]string{"--nnodes", "2", "--nproc_per_node", "2", "true"}, 64, "--node_rank is missing"},
		{[]string{"--nnodes", "2", "--node_rank", "2", "true"}, 64, "--node_rank 2 is not below --nnodes 2"},
		{[]string{"--nnodes", "2", "--node_rank", "0", "true"}, 64, "--master_addr is missing"},
		{[]string{"--nnodes", "2", "--node_rank", "0", "--master_addr", "224.0.0.1", "true"}, 64, "224.0.0.1 is a multicast address, to which nobody can connect"},
		{[]string{"--completion", "bash"}, 0, "complete -F _hcclrun hcclrun"},
		{[]string{"--check"}, 64, "--check examines the hosts of a list"},
		// The articles' command line, on the second of two hosts.
		{strings.Fields("--nproc_per_node=2 --nnodes=2 --node_rank=1 --master_addr=192.168.1.10 --master_port=29500 sh -c " +
			"echo:$GOTRAIN_RANK/$GOTRAIN_WORLD_SIZE:$GOTRAIN_LOCAL_RANK:$GOTRAIN_NODE_RANK/$GOTRAIN_NODES:$GOTRAIN_MASTER_ADDR:$GOTRAIN_MASTER_PORT"), 0,
			"[rank 3] 3/4 1 1/2 192.168.1.10 29500\n"},
		{strings.Fields("--rdzv_endpoint=n1:29400 --rdzv_id=7 --nproc-per-node 1 --nnodes 2 --node-rank 1 sh -c " +
			"echo:$GOTRAIN_MASTER_ADDR:$GOTRAIN_MASTER_PORT:$GOTRAIN_JOB_ID"),
			0, "n1 29400 run-7-0\n"},
		{[]string{"-H", "a", "--hostfile", "f", "true"}, 64, "both -H and --hostfile are given"},
		{[]string{"--hostfile", "/no/such/file", "true"}, 66, "/no/such/file"},
		{[]string{"-H", "localhost:2", "-n", "3", "true"}, 64, "3 ranks, but the hosts of -H have 2 slots"},
		{[]string{"-H", "localhost:2", "sh", "-c", "echo $GOTRAIN_RANK/$GOTRAIN_WORLD_SIZE"}, 0, "[rank 1] 1/2\n"},
	} {
		if last := len(c.args) - 1; strings.HasPrefix(c.args[last], "echo:") {
			c.args[last] = strings.ReplaceAll(c.args[last], ":", " ")
		}
		var out bytes.Buffer
		code := run(t.Context(), c.args, &out, &out)
		if c.code == 70 && code == 71 { // whichever of the two was first
			code = 70
		}
		if code != c.code || !strings.Contains(out.String(), c.text) {
			t.Errorf("%v: code %d\n%s", c.args, code, out.String())
		}
	}
}

// What is sent to other hosts: settings, nothing secret, and what was asked for.
func TestForward(t *testing.T) {
	r := &runner{options: options{env: []string{"MY_API_KEY", "MINE=1"}}}
	got := strings.Join(r.forward([]string{"HOME=/root", "GOTRAIN_DATA=/d", "HCCL_TIMEOUT=3", "ASCEND_HOME=/a", "OMP_NUM_THREADS=2", "PATH=/bin",
		"HCCL_PASSWORD=x", "GOTRAIN_TOKEN_FILE=/t", "GOTRAIN_JOB_TOKEN=x", "MY_API_KEY=k", "MINE=1", "OTHER=2"}), " ")
	if want := "GOTRAIN_DATA=/d HCCL_TIMEOUT=3 ASCEND_HOME=/a OMP_NUM_THREADS=2 PATH=/bin MY_API_KEY=k MINE=1"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
