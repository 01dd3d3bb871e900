// Package launch answers "who am I?" for a process of a distributed job, and starts and supervises the ranks of a job
// on this machine when nobody else did.
//
// # Who am I
//
// [WhoAmI] reads the environment that launchers leave behind and returns an [Identity]. It looks, in this order, for
//
//	gotrain      GOTRAIN_RANK, GOTRAIN_WORLD_SIZE, GOTRAIN_LOCAL_RANK, GOTRAIN_LOCAL_WORLD_SIZE, …
//	torchrun     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_*
//	Open MPI     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, PMIX_NAMESPACE
//	MPICH/Hydra  PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (Intel MPI too)
//	Slurm        SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_NODEID, … inside an srun step
//
// and otherwise the process is alone. The first launcher that left any of its variables decides; a set that is
// not complete, or whose numbers contradict each other, is an error that names the variable and the launcher. An empty
// variable counts as not set.
//
// # Supervise
//
// [Supervise] starts one process per rank with the GOTRAIN_* contract in its environment and stays with them:
//
//   - all ranks share one process group of their own, and the kernel kills them when the supervisor dies in any way (Linux);
//   - each rank is bound to its own cores where there are enough of them, and told how many threads to use;
//   - output comes line by line, never mixed within a line, with "[rank 1] " in front for every rank but 0;
//   - TERM, INT, USR1, USR2 and HUP are passed on, a second INT kills at once;
//   - when a rank fails the others get TERM, and after a grace time the group is killed;
//   - the first failure is the error that comes back: rank, host, process, exit code or signal, its last lines. A rank that
//     gave up because a peer was gone is never called first when another one failed by itself.
//
// # Who failed first
//
// A rank that fails records its failure with [Report] before it tells its peers: time, exit code, reason, and the ranks that it blames. An error blames
// ranks when it has a method Blames() []int (those of package ddp/comm do), or by [WithBlame]. The supervisor decides from the records of all ranks: the
// first failure is the earliest that blames nobody; where all blame somebody, a blamed rank that had to be killed hung and is the first. A program that
// records nothing is judged by when and how it ended; exit code 69 blames a peer then. Package train records by itself; a loop of your own calls Report.
//
// # Exit codes
//
// The codes that gotrain exits with are in one table, [Codes]; [ExitCode] finds the one of an error.
package launch
