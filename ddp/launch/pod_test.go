package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	operator = "RANK=1 WORLD_SIZE=16 LOCAL_WORLD_SIZE=8 LOCAL_RANK=0,1,2,3,4,5,6,7 MASTER_ADDR=10.0.0.1 MASTER_PORT=2222 "
	pytorch  = "PET_NNODES=2 PET_NPROC_PER_NODE=4 PET_NODE_RANK=1 PET_MASTER_ADDR=m PET_MASTER_PORT=23456 "
	vcPlugin = "VC_TASK_INDEX=1 VC_WORKER_HOSTS=w0,w1 RANK=2 WORLD_SIZE=3 MASTER_ADDR=m MASTER_PORT=23456 "
)

func TestPods(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{operator, "node 1 of 2 (the Ascend operator), ranks 8–15 of 16; 10.0.0.1:2222 nodes-10.0.0.1-2222-0"},
		{operator + "GOTRAIN_JOB_ID=x", "node 1 of 2 (the Ascend operator), ranks 8–15 of 16; 10.0.0.1:2222 x"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0,1", "node 0 of 1 (the Ascend operator), ranks 0–1 of 2; :0 "},
		{pytorch, "node 1 of 2 (PyTorchJob (PET_*)), ranks 4–7 of 8; m:23456 nodes-m-23456-0"},
		{pytorch + "RANK=1 WORLD_SIZE=8 MASTER_ADDR=n MASTER_PORT=1", "node 1 of 2 (PyTorchJob (PET_*)), ranks 4–7 of 8; n:1 nodes-n-1-0"},
		{"PET_NNODES=2 PET_NPROC_PER_NODE=auto RANK=1 WORLD_SIZE=2 MASTER_ADDR=n MASTER_PORT=1", "node 1 of 2 (PyTorchJob (PET_*)); n:1 nodes-n-1-0"},
		{"PET_NNODES=2:2 PET_NODE_RANK=0 PET_MASTER_ADDR=m PET_MASTER_PORT=5", "node 0 of 2 (PyTorchJob (PET_*)); m:5 nodes-m-5-0"},
		{"PET_NPROC_PER_NODE=3", "node 0 of 1 (PyTorchJob (PET_*)), ranks 0–2 of 3; :0 "},
		{vcPlugin, "node 2 of 3 (plugin pytorch of Volcano); m:23456 nodes-m-23456-0"},
		{"GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=1 VC_WORKER_HOSTS=w0.svc,w1.svc VC_WORKER_NUM=2", "node 1 of 2 (Volcano); w0.svc:23456 nodes-w0.svc-23456-0"},
		{"GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=1 VC_WORKER_HOSTS=w0,w1 MASTER_ADDR=m MASTER_PORT=5", "node 1 of 2 (Volcano); m:5 nodes-m-5-0"},
		{"PET_NNODES=2 PET_NODE_RANK=0 GOTRAIN_RENDEZVOUS=file:///x/y", "node 0 of 2 (PyTorchJob (PET_*)); :0 " + safeName("nodes-file:///x/y")},
		// These are ranks, or alone.
		{pytorch + "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", "none"},
		{operator + "GOTRAIN_RANK=1", "none"},
		{operator + "GOTRAIN_LAUNCHER=none", "none"},
		{"RANK=2 WORLD_SIZE=3", "none"},
		{vcPlugin + "LOCAL_WORLD_SIZE=1", "none"},
		{"VC_TASK_INDEX=1 VC_WORKER_HOSTS=w0,w1", "none"},
		{"", "none"},
	} {
		p, ok, err := PodOf(env(c.env))
		var j Job
		p.Place(&j)
		got := fmt.Sprintf("%s; %s:%d %s", p, p.MasterAddr, p.MasterPort, j.JobID)
		if !ok {
			got = "none"
		}
		if err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.env, got, err, c.want)
		}
	}
}

func TestPodErrors(t *testing.T) {
	for _, c := range []struct{ env, variable, text string }{
		{"RANK=0 LOCAL_RANK=0,1", "WORLD_SIZE", "not set"},
		{"WORLD_SIZE=4 LOCAL_RANK=0,1", "RANK", "not set"},
		{"RANK=0 WORLD_SIZE=3 LOCAL_RANK=0,1", "WORLD_SIZE", "not a multiple of the 2 ranks"},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=0,1 LOCAL_WORLD_SIZE=4", "LOCAL_RANK", "are 2 ranks, but LOCAL_WORLD_SIZE=4"},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=1,0", "LOCAL_RANK", "does not count from 0"},
		{"RANK=2 WORLD_SIZE=4 LOCAL_RANK=0,1 MASTER_ADDR=m MASTER_PORT=1", "node rank", "2 is not below"},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=0,1", "MASTER_ADDR", "the same on all machines"},
		{"PET_NNODES=1:4 PET_NPROC_PER_NODE=8", "PET_NNODES", "is a range"},
		{"PET_NNODES=x", "PET_NNODES", "not a non-negative number"},
		{"PET_NNODES=2", "RANK", "the operator sets it"},
		{"PET_NNODES=2 PET_NPROC_PER_NODE=some PET_NODE_RANK=0", "PET_NPROC_PER_NODE", "not a non-negative number"},
		{"PET_NNODES=2 PET_NPROC_PER_NODE=4 PET_NODE_RANK=0 WORLD_SIZE=3", "WORLD_SIZE", "fits neither"},
		{"PET_NNODES=2 PET_NODE_RANK=0 PET_MASTER_ADDR=224.0.0.1 PET_MASTER_PORT=5", "PET_MASTER_ADDR, PET_MASTER_PORT", "multicast"},
		{"GOTRAIN_LAUNCHER=volcano VC_WORKER_HOSTS=a,b", "VC_TASK_INDEX", "not set"},
		{"GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=1", "VC_WORKER_HOSTS", "not set"},
		{"GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=2 VC_WORKER_HOSTS=a,b", "VC_TASK_INDEX", "not below the number of hosts"},
	} {
		p, ok, err := PodOf(env(c.env))
		var e *EnvError
		if ok || !errors.As(err, &e) || e.Var != c.variable || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, error %v\nwant one about %s with %q", c.env, p, err, c.variable, c.text)
		}
	}
}

// The ranks that the supervisors of all pods start are those of one job.
func TestPodsMakeOneJob(t *testing.T) {
	seen := map[int]string{}
	for pod := range 2 {
		p, ok, err := PodOf(env(strings.Replace(operator, "RANK=1", fmt.Sprintf("RANK=%d", pod), 1)))
		if !ok || err != nil {
			t.Fatal(err)
		}
		j := Job{Argv: []string{"x"}, Ranks: 99, Env: append([]string{"PATH=/bin", "RANK=0", "LOCAL_RANK=0,1,2,3,4,5,6,7"}, p.Environ()...)}
		p.Place(&j)
		if err := j.fill(); err != nil {
			t.Fatal(err)
		}
		part := j.part(0, j.First)
		for i := range 8 {
			id, err := WhoAmI(LookupIn(part.environ(i, Placement{Threads: 1})))
			if err != nil {
				t.Fatal(err)
			}
			seen[id.Rank] = fmt.Sprintf("%s at %s:%d", id, id.MasterAddr, id.MasterPort)
		}
	}
	for r := range 16 {
		want := fmt.Sprintf("rank %d of 16 (local %d of 8, node %d of 2) from gotrain, job nodes-10.0.0.1-2222-0 at 10.0.0.1:2222", r, r%8, r/8)
		if seen[r] != want {
			t.Errorf("%s, want %s", seen[r], want)
		}
	}
	j := Job{Ranks: 4}
	Pod{Node: 1, Nodes: 3}.Place(&j)
	if j.Ranks != 4 || j.First != 4 || j.World != 12 || j.JobID == "" {
		t.Errorf("%+v", j)
	}
}

// FuzzPod: whatever the environment, a pod has numbers that fit into a job.
func FuzzPod(f *testing.F) {
	f.Add(operator)
	f.Add(pytorch)
	f.Add(vcPlugin)
	f.Add("GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=1 VC_WORKER_HOSTS=w0,w1")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok, err := PodOf(env(s))
		if !ok || err != nil {
			return
		}
		j := Job{Argv: []string{"x"}, Ranks: 1}
		if p.Place(&j); j.Ranks <= 4096 && j.fill() != nil {
			t.Fatalf("%q: %+v: %v", s, p, j.fill())
		}
	})
}
