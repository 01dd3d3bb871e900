package find

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gotrain/gotrain/ddp/launch"
)

// place asks as a rank of an environment would.
func place(t *testing.T, env string) (got string, err error) {
	t.Helper()
	lookup := launch.LookupIn(strings.Fields(env))
	id, err := launch.WhoAmI(lookup)
	if err != nil {
		return "", err
	}
	p, err := Where(id, lookup)
	if err != nil {
		return "", err
	}
	got = p.Addr + " | " + p.How
	if p.Job != "" {
		got += " | job " + p.Job
	}
	if p.Open {
		got += " | open"
	}
	if p.Publish != nil || p.Lookup != nil {
		got += " | exchanged"
	}
	if p.Addr == "" && (p.Publish == nil || p.Lookup == nil) || p.Open && (p.Warning() == "" || p.Token != nil) ||
		p.Publish != nil && id.Rank == 0 && p.Token == nil {
		t.Errorf("%s: %+v does not hold together", env, p)
	}
	return got, nil
}

const (
	ours  = "GOTRAIN_RANK=1 GOTRAIN_WORLD_SIZE=4 GOTRAIN_LOCAL_RANK=1 GOTRAIN_LOCAL_WORLD_SIZE=2 GOTRAIN_JOB_ID=j "
	torch = "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none "
	hydra = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=6 "
	ompi  = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
	slurm = "SLURM_JOB_ID=123456 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2(x2) " +
		"SLURM_STEP_NODELIST=n[07-08] SLURM_STEP_NUM_TASKS=4 "
	master = "MASTER_ADDR=n1 MASTER_PORT=29500 "
	secret = "GOTRAIN_JOB_TOKEN=0123456789abcdef "
)

func TestWhere(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ env, want string }{
		{torch + master, "n1:29500 | MASTER_ADDR=n1 MASTER_PORT=29500 | open"},
		{torch + master + secret, "n1:29500 | MASTER_ADDR=n1 MASTER_PORT=29500"},
		{torch + master + "TORCHELASTIC_USE_AGENT_STORE=True", "n1:29600 | MASTER_ADDR=n1 MASTER_PORT=29500 (torchrun's store; gotrain takes port 29600) | open"},
		{torch + "MASTER_ADDR=n1 MASTER_PORT=65500 TORCHELASTIC_USE_AGENT_STORE=True",
			"n1:65400 | MASTER_ADDR=n1 MASTER_PORT=65500 (torchrun's store; gotrain takes port 65400) | open"},
		{torch + master + "GOTRAIN_MASTER_ADDR=10.0.0.1 GOTRAIN_MASTER_PORT=5000 TORCHELASTIC_USE_AGENT_STORE=True",
			"10.0.0.1:5000 | GOTRAIN_MASTER_ADDR=10.0.0.1 GOTRAIN_MASTER_PORT=5000 | open"},
		{torch + "MASTER_ADDR=fe80::1 MASTER_PORT=29500", "[fe80::1]:29500 | MASTER_ADDR=fe80::1 MASTER_PORT=29500 | open"},
		{torch + "PET_RDZV_ENDPOINT=n3:29400", "n3:29400 | PET_RDZV_ENDPOINT=n3:29400 | open"},
		{ours + "GOTRAIN_MASTER_ADDR=n2", "n2:29500 | GOTRAIN_MASTER_ADDR=n2 | open"},
		{ours + "GOTRAIN_RENDEZVOUS=tcp://n2:29501", "n2:29501 | GOTRAIN_RENDEZVOUS=tcp://n2:29501 | open"},
		{ours + "GOTRAIN_RENDEZVOUS=file://" + dir, " | file " + dir + "/gotrain-j | exchanged"},
		{ours + "GOTRAIN_RENDEZVOUS=file://" + dir + "/x " + hydra, " | file " + dir + "/x | exchanged"},
		{hydra + master, "n1:29500 | MASTER_ADDR=n1 MASTER_PORT=29500 | job at-n1:29500 | open"},
		{hydra, " | PMI-1 (PMI_FD=6) | job mpirun | exchanged"},
		{hydra + secret, " | PMI-1 (PMI_FD=6) | job mpirun | exchanged"},
		{slurm + "SLURM_STEP_ID=0", "n07:23456 | n07:23456 (first host of Slurm's step 123456.0) | open"},
		{slurm + "SLURM_STEP_ID=2", "n07:28462 | n07:28462 (first host of Slurm's step 123456.2) | open"},
		{slurm + "SLURM_STEP_ID=0 PMI_FD=6", " | PMI-1 (PMI_FD=6) | exchanged"},
		{slurm + "SLURM_STEP_ID=0 PMIX_NAMESPACE=slurm.pmix.5.0 GOTRAIN_PMIX=/nowhere", "n07:23456 | n07:23456 (first host of Slurm's step 123456.0) | open"},
		{ompi + master, "n1:29500 | MASTER_ADDR=n1 MASTER_PORT=29500 | job at-n1:29500 | open"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1", " | a file on this host | exchanged"},
	} {
		if got, err := place(t, c.env); err != nil || got != c.want {
			t.Errorf("%s\n got %s, %v\nwant %s", c.env, got, err, c.want)
		}
	}
}

func TestWhereErrors(t *testing.T) {
	dir := t.TempDir()
	weak := filepath.Join(dir, "weak")
	if err := os.WriteFile(weak, []byte(strings.Repeat("x", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, want string }{
		{ours, "no GOTRAIN_MASTER_ADDR, no GOTRAIN_RENDEZVOUS, no MASTER_ADDR, no PET_RDZV_ENDPOINT, no PMI_FD, no PMIX_NAMESPACE and no step of Slurm"},
		{ompi + "OMPI_MCA_orte_hnp_uri=1901789184.0;tcp://192.0.2.2,10.0.0.2:49713;tcp6://[fd00::2]:40833", "(mpirun runs at 192.0.2.2 or 10.0.0.2)"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_RENDEZVOUS=file:///tmp", "unset one of them"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_MASTER_PORT=70000", "not a port"},
		{ours + "GOTRAIN_MASTER_ADDR=n1:5 GOTRAIN_MASTER_PORT=6", "give the port once"},
		{ours + "GOTRAIN_MASTER_ADDR=0.0.0.0", "give the address of rank 0"},
		{ours + "GOTRAIN_MASTER_ADDR=tcp://224.0.0.1:23456", "multicast"},
		{torch + "MASTER_ADDR=224.0.0.1 MASTER_PORT=23456", "give the address of rank 0"},
		{ours + "GOTRAIN_RENDEZVOUS=shared/x", "file:///FOLDER"},
		{ours + "GOTRAIN_RENDEZVOUS=file://host/x", "file:///FOLDER"},
		{ours + "GOTRAIN_RENDEZVOUS=file:///no/such/folder/x", "create a folder that all hosts share"},
		{strings.ReplaceAll(hydra, "PMI_FD=6", "") + "GOTRAIN_RENDEZVOUS=file://" + dir, "GOTRAIN_JOB_ID: not set"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_JOB_TOKEN=short", "can be guessed"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_TOKEN_FILE=" + weak, "other users can read"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_TOKEN_FILE=" + dir, "not a regular file"},
		{ours + "GOTRAIN_MASTER_ADDR=n1 GOTRAIN_TOKEN_FILE=/no/such", "no such file"},
		{ompi + "PMIX_NAMESPACE=1 GOTRAIN_PMIX=/nowhere", "set GOTRAIN_MASTER_ADDR to the address of rank 0 (mpirun -x"},
		{strings.Replace(slurm, "123456", "x", 1) + "SLURM_STEP_ID=0", "not a job's number"},
	} {
		got, err := place(t, c.env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, error %v\nwant one with %q", c.env, got, err, c.want)
			continue
		}
		if !strings.Contains(err.Error(), "\nhint: ") && c.want != "no such file" && c.want != "not a regular file" {
			t.Errorf("%s: no hint: %v", c.env, err)
		}
		if strings.Contains(err.Error(), strings.Repeat("x", 40)) {
			t.Errorf("the error has the token: %v", err)
		}
	}
}

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("  from-the-file-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{
		"": "", "GOTRAIN_TOKEN_FILE=" + path: "from-the-file-0123456789",
		"GOTRAIN_TOKEN_FILE=" + path + " " + secret: "0123456789abcdef",
	} {
		got, err := token(launch.LookupIn(strings.Fields(env)))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", env, got, err)
		}
	}
	if a, b := newToken(), newToken(); len(a) < 50 || string(a) == string(b) {
		t.Errorf("%s, %s", a, b)
	}
	var e *launch.EnvError
	if _, err := token(launch.LookupIn([]string{"GOTRAIN_JOB_TOKEN=x"})); !errors.As(err, &e) || launch.ExitCode(err) != launch.ExitUsage {
		t.Errorf("%v", err)
	}
}
