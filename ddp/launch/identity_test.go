package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func fakeParent() string { return "777-1" }

func env(s string) Lookup { return LookupIn(strings.Fields(s)) }

func TestWhoAmI(t *testing.T) {
	const (
		slurm = "SLURM_JOB_ID=5 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_NTASKS=4 SLURM_TASKS_PER_NODE=2(x2) SLURM_JOB_NODELIST=n[07-08] "
		step  = "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "
		ompi  = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
			"OMPI_COMM_WORLD_NODE_RANK=1 PMIX_NAMESPACE=1226375169 "
		torch = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 GROUP_WORLD_SIZE=2 " +
			"MASTER_ADDR=h0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=2 "
		ours = "GOTRAIN_RANK=1 GOTRAIN_WORLD_SIZE=2 GOTRAIN_LOCAL_RANK=1 GOTRAIN_LOCAL_WORLD_SIZE=2 GOTRAIN_JOB_ID=abc "
	)
	for _, c := range []struct {
		name, env string
		want      Identity
	}{
		{"gotrain", ours, Identity{1, 2, 1, 2, 0, 1, "", 0, "abc", SourceGotrain, 0}},
		{"gotrain wins over all", ours + torch + ompi + slurm + step, Identity{1, 2, 1, 2, 0, 1, "h0", 29500, "abc", SourceGotrain, 0}},
		{"torchrun", torch, Identity{5, 8, 1, 4, 1, 2, "h0", 29500, "torch-none-29500-2", SourceTorchrun, 2}},
		{"torchrun wins over Open MPI", torch + ompi, Identity{5, 8, 1, 4, 1, 2, "h0", 29500, "torch-none-29500-2", SourceTorchrun, 2}},
		{"by hand on one machine", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1", Identity{1, 2, 1, 2, 0, 1, "", 0, "parent-777-1", SourceTorchrun, 0}},
		{"by hand without the local rank", "RANK=9 WORLD_SIZE=12 LOCAL_WORLD_SIZE=8 MASTER_ADDR=tcp://10.0.0.1:29500",
			Identity{9, 12, 1, 4, 1, 2, "10.0.0.1", 29500, "torch--29500-0", SourceTorchrun, 0}},
		{"by hand with NPROC_PER_NODE", "RANK=3 WORLD_SIZE=4 NPROC_PER_NODE=2", Identity{3, 4, 1, 2, 1, 2, "", 0, "parent-777-1", SourceTorchrun, 0}},
		{"by hand with all but the nodes", "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", Identity{3, 4, 1, 2, -1, -1, "", 0, "parent-777-1", SourceTorchrun, 0}},
		{"torchrun in a pod of PyTorchJob", torch + "PET_NNODES=2 PET_NPROC_PER_NODE=4 PET_NODE_RANK=1",
			Identity{5, 8, 1, 4, 1, 2, "h0", 29500, "torch-none-29500-2", SourceTorchrun, 2}},
		{"supervised in a pod", ours + "RANK=1 WORLD_SIZE=16 LOCAL_RANK=0,1 LOCAL_WORLD_SIZE=2 PET_NNODES=8", Identity{1, 2, 1, 2, 0, 1, "", 0, "abc", SourceGotrain, 0}},
		{"open mpi", ompi, Identity{1, 2, 1, 2, 0, 1, "", 0, "ompi-1226375169", SourceOpenMPI, 0}},
		{"open mpi within slurm, job id by hand", ompi + slurm + "GOTRAIN_JOB_ID=j GOTRAIN_MASTER_ADDR=m GOTRAIN_MASTER_PORT=1 MASTER_PORT=2",
			Identity{1, 2, 1, 2, 0, 1, "m", 1, "j", SourceOpenMPI, 0}},
		{"open mpi on two machines", "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
			"OMPI_MCA_ess_base_jobid=9",
			Identity{3, 4, 1, 2, -1, -1, "", 0, "ompi-9", SourceOpenMPI, 0}},
		{"open mpi on machines with 2 and 1 ranks", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 " +
			"OMPI_MCA_ess_base_jobid=9",
			Identity{2, 3, 0, 1, -1, -1, "", 0, "ompi-9", SourceOpenMPI, 0}},
		{"open mpi 5 with more ranks than slots", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=3 " +
			"PMIX_NAMESPACE=prterun-vm-976@1",
			Identity{1, 3, 2, 3, 0, 1, "", 0, safeName("ompi-prterun-vm-976@1"), SourceOpenMPI, 0}},
		{"open mpi 4, second of three machines", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 " +
			"PMIX_NAMESPACE=7 PMIX_SERVER_URI41=1901789184.1;tcp4://127.0.0.1:52007",
			Identity{2, 4, 0, 1, 1, -1, "", 0, "ompi-7", SourceOpenMPI, 0}},
		{"open mpi 5, second machine", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
			"PMIX_NAMESPACE=7 PMIX_SERVER_URI4=prterun-n.site-15@0.1;tcp4://127.0.0.1:54531",
			Identity{2, 4, 0, 2, 1, -1, "", 0, "ompi-7", SourceOpenMPI, 0}},
		{"open mpi dealt round robin", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			Identity{1, 4, 0, 2, -1, -1, "", 0, "parent-777-1", SourceOpenMPI, 0}},
		{"hydra", "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2", Identity{0, 2, 0, 2, 0, 1, "", 0, "parent-777-1", SourcePMI, 0}},
		{"newer hydra", "PMI_RANK=0 PMI_SIZE=2 PMI_LOCAL_RANK=0 PMI_LOCAL_SIZE=2", Identity{0, 2, 0, 2, 0, 1, "", 0, "parent-777-1", SourcePMI, 0}},
		{"slurm", slurm + step, Identity{3, 4, 1, 2, 1, 2, "n07", 0, "slurm-5-0-0", SourceSlurm, 0}},
		{"srun with pmi", slurm + step + "PMI_RANK=3 PMI_SIZE=4", Identity{3, 4, 1, 2, 1, 2, "n07", 0, "slurm-5-0-0", SourceSlurm, 0}},
		{"slurm with 3, 3 and 2 tasks", "SLURM_JOB_ID=5 SLURM_STEP_ID=1 SLURM_PROCID=7 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_NUM_TASKS=8 " +
			"SLURM_STEP_TASKS_PER_NODE=3(x2),2 SLURM_NTASKS=99 SLURM_TASKS_PER_NODE=33(x3) SLURM_STEP_NODELIST=r1n[09-10],r2n[1] SLURM_JOB_NODELIST=q",
			Identity{7, 8, 1, 2, 2, 3, "r1n09", 0, "slurm-5-1-0", SourceSlurm, 0}},
		{"slurm, cyclic", "SLURM_JOB_ID=5 SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=2(x2) " +
			"SLURM_STEP_NODELIST=a,b PMIX_RANK=2 PMIX_NAMESPACE=slurm.pmix.5.0",
			Identity{2, 4, 1, 2, 0, 2, "a", 0, "slurm-5-0-0", SourceSlurm, 0}},
		{"alone", "PATH=/bin RANK=", Identity{0, 1, 0, 1, 0, 1, "", 0, "", SourceSingle, 0}},
		{"shell of sbatch is no rank", slurm, Identity{0, 1, 0, 1, 0, 1, "", 0, "", SourceSingle, 0}},
		{"interactive step of salloc is no rank", slurm + "SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1", Identity{0, 1, 0, 1, 0, 1, "", 0, "", SourceSingle, 0}},
	} {
		got, err := whoAmI(env(c.env), fakeParent)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.want.Source == SourceSingle {
			got.JobID = "" // holds the process number
		}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestWhoAmIErrors(t *testing.T) {
	for _, c := range []struct{ env, variable, text string }{
		{"GOTRAIN_RANK=0", "GOTRAIN_WORLD_SIZE", "not set, but other variables of this launcher are"},
		{"GOTRAIN_WORLD_SIZE=2", "GOTRAIN_RANK", "not set"},
		{"RANK=0", "WORLD_SIZE", "torchrun"},
		{"RANK=0 WORLD_SIZE=2", "LOCAL_RANK", "1 if each pod is one rank"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=0", "LOCAL_WORLD_SIZE", "not a number of processes"},
		{"RANK=8 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2", "RANK", "8 is not below WORLD_SIZE=4"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=224.0.0.1 MASTER_PORT=23456", "MASTER_ADDR", "give the address of rank 0"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=tcp://224.0.0.1:23456 MASTER_PORT=23456", "MASTER_ADDR", "multicast"},
		{"PET_NNODES=2 PET_NPROC_PER_NODE=8 PET_NODE_RANK=1 PET_MASTER_ADDR=h PET_MASTER_PORT=1", "LOCAL_RANK", "is to start the 8 ranks of node 1 of 2"},
		{"GOTRAIN_LAUNCHER=volcano VC_TASK_INDEX=1 VC_WORKER_HOSTS=a,b", "GOTRAIN_LAUNCHER", "start the program with hcclrun"},
		{"WORLD_SIZE=2", "RANK", "not set"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0,1 LOCAL_WORLD_SIZE=2", "LOCAL_RANK", "is to start the 2 ranks of node 0 of 1 (the Ascend operator)"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 GROUP_WORLD_SIZE=2", "LOCAL_WORLD_SIZE", "not set"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h", "MASTER_PORT", "not set"},
		{"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=70000", "MASTER_PORT", "not a port"},
		{"RANK=two WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "RANK", `"two" is not a non-negative number`},
		{"RANK=-1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "RANK", "is not a non-negative number"},
		{"RANK=0 WORLD_SIZE=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "WORLD_SIZE", "not a number of processes"},
		{"RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "RANK", "2 is not below WORLD_SIZE=2"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "LOCAL_RANK", "1 is not below LOCAL_WORLD_SIZE=1"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", "LOCAL_WORLD_SIZE", "4 is more than WORLD_SIZE=2"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "LOCAL_RANK", "all 2 ranks are on one machine"},
		{"RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=3 GROUP_WORLD_SIZE=2", "node rank", "3 is not below"},
		{"RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_WORLD_SIZE=1", "number of nodes", "does not fit"},
		{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE", "Open MPI"},
		{"PMI_RANK=0 PMI_SIZE=2", "MPI_LOCALRANKID", "MPICH/Hydra"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2", "SLURM_LOCALID", "Slurm"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0", "SLURM_TASKS_PER_NODE", "not set"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=2(x", "SLURM_TASKS_PER_NODE", "cannot read"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=2(x2)", "SLURM_TASKS_PER_NODE", "are 4 tasks"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=2 SLURM_JOB_NODELIST=n[1", "SLURM_STEP_NODELIST", "without a ]"},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=4 SLURM_TASKS_PER_NODE=2", "SLURM_NODEID", "not below the number of nodes"},
	} {
		id, err := whoAmI(env(c.env), fakeParent)
		var e *EnvError
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v, error %v", c.env, id, err)
			continue
		}
		if e.Var != c.variable || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: wrong error: %v\nwant one about %s with %q", c.env, err, c.variable, c.text)
		}
		if ExitCode(fmt.Errorf("x: %w", err)) != ExitUsage {
			t.Errorf("%s: exit code %d", c.env, ExitCode(err))
		}
	}
}

// FuzzWhoAmI: whatever the environment, either an error or numbers that fit together, and Environ says the same again.
func FuzzWhoAmI(f *testing.F) {
	f.Add("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=h MASTER_PORT=1")
	f.Add("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-h@1")
	f.Add("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2")
	f.Add("SLURM_PROCID=2 SLURM_STEP_ID=0 SLURM_NTASKS=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_TASKS_PER_NODE=2,1 SLURM_JOB_NODELIST=a[1,3-4]b,c")
	f.Add("GOTRAIN_RANK=0 GOTRAIN_WORLD_SIZE=1 GOTRAIN_LOCAL_RANK=0 GOTRAIN_LOCAL_WORLD_SIZE=1 GOTRAIN_NODES=1 GOTRAIN_JOB_ID=../x")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := whoAmI(env(s), fakeParent)
		if err != nil {
			return
		}
		if id.Rank < 0 || id.Rank >= id.World || id.LocalRank < 0 || id.LocalRank >= id.LocalWorld || id.LocalWorld > id.World ||
			id.Nodes > 0 && id.NodeRank >= id.Nodes || id.Nodes < 1 && (id.Nodes != -1 || id.NodeRank < -1 || id.LocalWorld == id.World) {
			t.Fatalf("%q: numbers do not fit: %+v", s, id)
		}
		if id.JobID == "" || len(id.JobID) > 64 || strings.ContainsAny(id.JobID, "/ \x00") || id.JobID[0] == '.' {
			t.Fatalf("%q: job id %q is not fit for a file name", s, id.JobID)
		}
		again, err := WhoAmI(LookupIn(id.Environ()))
		if err != nil {
			t.Fatalf("%q: %+v does not survive Environ: %v", s, id, err)
		}
		id.Source = SourceGotrain
		if again != id {
			t.Fatalf("%q: Environ changed\n%+v to\n%+v", s, id, again)
		}
	})
}

func TestSafeName(t *testing.T) {
	if a, b := safeName("a/b"), safeName("a_b"); a == b {
		t.Errorf("different jobs share the name %s", a)
	}
	if got := safeName("j-1_2.3"); got != "j-1_2.3" {
		t.Errorf("a good name was changed to %s", got)
	}
}

func TestChosenLauncher(t *testing.T) {
	left := []string{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "PMI_RANK=1", "PMI_SIZE=3", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=3"}
	for _, c := range []struct{ choice, want string }{
		{"", "0 of 2 torchrun RANK=0, WORLD_SIZE=2, LOCAL_RANK=0"},
		{"none", "0 of 1 single "},
		{"pmi", "1 of 3 pmi PMI_RANK=1, PMI_SIZE=3, MPI_LOCALRANKID=1, MPI_LOCALNRANKS=3"},
		{"slurm", "launch: environment of Slurm (SLURM_*): SLURM_PROCID: not set, but other variables of this launcher are"},
		{"mpi", `launch: environment of gotrain (GOTRAIN_*): GOTRAIN_LAUNCHER: "mpi" is not a launcher`},
	} {
		lookup := LookupIn(append(left, "GOTRAIN_LAUNCHER="+c.choice))
		id, err := WhoAmI(lookup)
		got := fmt.Sprintf("%d of %d %s %s", id.Rank, id.World, id.Source, id.Said(lookup))
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), "\nhint: ")
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.choice, got, c.want)
		}
	}
}
