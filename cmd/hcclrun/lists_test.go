package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where the list of hosts comes from decides how they are reached, and which devices their ranks have.
func TestLists(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rsh := reach(t, `echo "on $host"; exec "$@"`)
	file := write("hosts", "# two\nn1 slots=2\n\nn2:1\n")
	table := write("table.json", `{"version":"1.0","status":"completed","server_count":"2","server_list":[
{"server_id":"n1","device":[{"device_id":"4","device_ip":"1.1.1.1","rank_id":"0"},{"device_id":"6","device_ip":"1.1.1.2","rank_id":"1"}]},
{"server_id":"n2","device":[{"device_id":"0","device_ip":"1.1.1.3","rank_id":"2"}]}]}`)
	// srun --nodes=1 … --nodelist HOST COMMAND…
	write("srun", "#!/bin/sh\nfor a; do shift; [ \"$a\" = --nodelist ] && break; done\nhost=$1; shift\nexec \"$@\"\n")
	self, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const who = `echo "$GOTRAIN_NODE_RANK:$GOTRAIN_RANK/$GOTRAIN_WORLD_SIZE=$ASCEND_RT_VISIBLE_DEVICES;"`
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want string // words of the output, one for each rank
		code int
	}{
		{"file", nil, []string{"--rsh", rsh, "--hostfile", file}, "0:0/3=; 0:1/3=; 1:2/3=;", 0},
		{"fewer", nil, []string{"--rsh", rsh, "-machinefile", file, "-np", "2"}, "0:0/2=; 0:1/2=;", 0},
		{"one a host", nil, []string{"--rsh", rsh, "-f", file, "-ppn", "1"}, "0:0/2=; 1:1/2=;", 0},
		{"more than slots", nil, []string{"--rsh", rsh, "--hostfile", file, "-n", "6", "--oversubscribe"}, "0:0/6=; 0:3/6=; 1:4/6=; 1:5/6=;", 0},
		{"include", nil, []string{"--rsh", rsh, "--hostfile", file, "--include", "n1:1@n2"}, "0:0/2=1; 1:1/2=;", 0},
		{"exclude", nil, []string{"--rsh", rsh, "--hostfile", file, "--exclude", "n1"}, "0:0/1=;", 0},
		{"rank table", nil, []string{"--rsh", rsh, "--hostfile", table}, "0:0/3=4,6; 0:1/3=4,6; 1:2/3=0;", 0},
		{"rank table in the environment", []string{"RANK_TABLE_FILE=" + table}, []string{"--rsh", rsh}, "0:0/3=4,6; 1:2/3=0;", 0},
		{"MPI operator", []string{"OMPI_MCA_orte_default_hostfile=" + file, "OMPI_MCA_plm_rsh_agent=" + rsh}, nil, "0:0/3=; 1:2/3=;", 0},
		{"Slurm", []string{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=1(x2)", "PATH=" + dir + ":" + os.Getenv("PATH")}, nil,
			"0:0/2=; 1:1/2=;", 0},
		{"Slurm, more ranks than tasks", []string{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=1(x2)",
			"PATH=" + dir + ":" + os.Getenv("PATH")}, []string{"-n", "4"}, "0:1/4=; 1:3/4=;", 0},
		{"Slurm, this host", []string{"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=" + self, "SLURM_TASKS_PER_NODE=1"}, []string{"-n", "3"}, "0:0/3=; 0:2/3=;", 0},
		{"these flags mean this host", []string{"RANK_TABLE_FILE=" + table}, []string{"--nproc_per_node", "2"}, "0:0/2=; 0:1/2=;", 0},
		{"too many", nil, []string{"--rsh", rsh, "--hostfile", file, "-n", "4"}, "4 ranks, but the hosts of " + file + " have 3 slots", 64},
		{"unknown host", nil, []string{"--rsh", rsh, "--hostfile", file, "--include", "n7"}, "this host is not among those", 64},
		{"a pod", []string{"PET_NNODES=2", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=2", "PET_MASTER_ADDR=n1", "PET_MASTER_PORT=29500"}, nil, "1:2/4=; 1:3/4=;", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, c.env, append(c.args, "sh", "-c", who)...)
			if code := h.code(); code != c.code {
				t.Fatalf("code %d, want %d\n%s", code, c.code, h.out.String())
			}
			words := []string{c.want}
			if c.code == 0 {
				words = strings.Fields(c.want)
			}
			for _, w := range words {
				if !strings.Contains(h.out.String(), w) {
					t.Errorf("no %q in\n%s", w, h.out.String())
				}
			}
		})
	}
}
