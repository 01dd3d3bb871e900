package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gotrain/gotrain/ddp/launch"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
		t.Fatal(err)
	}
	return path
}

// Where nothing is given, the environment decides, in this order.
func TestDefaults(t *testing.T) {
	dir := t.TempDir()
	mpi := write(t, filepath.Join(dir, "hostfile"), "worker-0.job.ns.svc slots=1\nworker-1.job.ns.svc slots=1\n")
	vc := filepath.Join(dir, "volcano")
	if err := os.Mkdir(vc, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(vc, "worker.host"), "job-worker-0.job\njob-worker-1.job\n")
	write(t, filepath.Join(vc, "master.host"), "job-master-0.job\n")
	const slurm = " SLURM_JOB_NODELIST=n[1-2],x SLURM_TASKS_PER_NODE=8(x2),4"
	const volcano = " VC_TASK_INDEX=0 VC_WORKER_NUM=2 VC_MASTER_NUM=1"
	for _, c := range []struct{ env, want string }{
		{"OMPI_MCA_orte_default_hostfile=" + mpi + volcano + slurm, "worker-0.job.ns.svc:1; worker-1.job.ns.svc:1"},
		{"HYDRA_HOST_FILE=" + mpi, "worker-0.job.ns.svc:1; worker-1.job.ns.svc:1"},
		{"I_MPI_HYDRA_HOST_FILE=" + mpi, "worker-0.job.ns.svc:1; worker-1.job.ns.svc:1"},
		{"RANK_TABLE_FILE=testdata/table-template2.json HYDRA_HOST_FILE=" + mpi, "10.0.0.1:2 devices [0 1] ranks [0 1]; 10.0.0.2:2 devices [6 7] ranks [2 3]"},
		{"MPI_HOST=job-mpiworker-0.job,job-mpiworker-1.job" + volcano, "job-mpiworker-0.job; job-mpiworker-1.job"},
		{volcano + slurm, "job-master-0.job; job-worker-0.job; job-worker-1.job"},
		{slurm, "n1:8; n2:8; x:4"},
		{slurm + " SLURM_PROCID=0 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1", "n1:8; n2:8; x:4"},
		{"SLURM_JOB_NODELIST=n1", "n1"},
		{slurm + " SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=20", "none"},
		{"", "none"},
	} {
		l, ok, err := defaults(t.Context(), launch.LookupIn(strings.Fields(c.env)), vc)
		got := show(l)
		if !ok {
			got = "none"
		}
		if err != nil || got != c.want || ok && l.From == "" {
			t.Errorf("%s: %s (from %q), %v, want %s", c.env, got, l.From, err, c.want)
		}
		if ok && l.Scheduler != strings.HasPrefix(l.From, "SLURM") {
			t.Errorf("%s: scheduler %v", c.env, l.Scheduler)
		}
	}
	for env, want := range map[string]string{
		"HYDRA_HOST_FILE=/no/such":                         "from HYDRA_HOST_FILE",
		"RANK_TABLE_FILE=/no/such":                         "no such file",
		"VC_TASK_INDEX=0 VC_WORKER_NUM=3":                  "it has 2 hosts, but VC_WORKER_NUM=3",
		"SLURM_JOB_NODELIST=n[1":                           "without a ]",
		"SLURM_JOB_NODELIST=n[1-2] SLURM_TASKS_PER_NODE=8": "does not give the tasks of 2 nodes",
		"SLURM_JOB_NODELIST=-x":                            "not the name of a host",
		"MPI_HOST=a,-b":                                    "MPI_HOST:2: this is not the name of a host",
	} {
		if l, ok, err := defaults(t.Context(), launch.LookupIn(strings.Fields(env)), vc); err == nil || ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, error %v, want one with %q", env, show(l), err, want)
		}
	}
	if l, ok, err := Default(t.Context(), launch.LookupIn(nil)); ok || err != nil {
		t.Errorf("%v, %v", l, err)
	}
}

func TestReadWaitsForATable(t *testing.T) {
	good, err := os.ReadFile("testdata/table-1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "table.json")
	early := bytes.Replace(good, []byte("completed"), []byte("initializing"), 1)
	if err := os.WriteFile(path, early, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Read(ctx, path); !errors.Is(err, ErrInitializing) || launch.ExitCode(err) != launch.ExitTimeout {
		t.Errorf("%v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { os.Rename(write(t, path+"2", string(good)), path) })
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if l, err := Read(ctx, path); err != nil || len(l.Hosts) != 2 {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := Read(ctx, path+"3"); launch.ExitCode(err) != launch.ExitNoInput {
		t.Errorf("%v", err)
	}
}

func TestFilter(t *testing.T) {
	l, err := Parse([]byte("a:4\nb:4\nc\n[fe80::1]:2"), "f")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ include, exclude, want string }{
		{"", "", "a:4; b:4; c; [fe80::1]:2"},
		{"a:0,2@b", "", "a:2 devices [0 2]; b:4"},
		{"b@a", "", "a:4; b:4"},
		{"c:4-5,7", "", "c:3 devices [4 5 7]"},
		{"[fe80::1]:1", "", "[fe80::1]:1 devices [1]"},
		{"", "a@c@[fe80::1]", "b:4"},
		{"", "a:0,1@b:0-3", "a:2 devices [2 3]; c; [fe80::1]:2"},
	} {
		got, err := l.Filter(c.include, c.exclude)
		if err != nil || show(got) != c.want {
			t.Errorf("%+v: %s, %v", c, show(got), err)
		}
	}
	for _, c := range []struct{ include, exclude, want string }{
		{"a", "b", "only one of them"},
		{"d", "", "not among those of f"},
		{"a:4", "", "no device 4 (it has 4 slots)"},
		{"", "c:0", "does not say how many devices"},
		{"a:x", "", "not numbers of devices"},
		{"a:", "", "not numbers of devices"},
		{"a@a:1", "", "appears twice"},
		{"", "a@b@c@[fe80::1]", "no host is left"},
		{"-x", "", "not the name of a host"},
	} {
		if got, err := l.Filter(c.include, c.exclude); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %s, error %v", c, show(got), err)
		}
	}
	table, err := Read(t.Context(), "testdata/table-template2.json")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := table.Filter("10.0.0.2:7", ""); err != nil || show(got) != "10.0.0.2:1 devices [7]" {
		t.Errorf("%s, %v", show(got), err)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("a:0,2@b", "")
	f.Add("", "[fe80::1]:0-1@a:3")
	l, _ := Parse([]byte("a:4\nb:4\nc\n[fe80::1]:2"), "f")
	f.Fuzz(func(t *testing.T, include, exclude string) {
		got, err := l.Filter(include, exclude)
		if err != nil {
			return
		}
		for _, h := range got.Hosts {
			if h.Devices != nil && len(h.Devices) != h.Slots {
				t.Fatal(fmt.Sprintf("%q %q", include, exclude), h)
			}
		}
	})
}
