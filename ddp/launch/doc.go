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
// and otherwise the process is alone. GOTRAIN_LAUNCHER=none says that it is, whatever is left in the environment; the name of a source picks that one. The first launcher that left any of its variables decides; a set that is
// not complete, or whose numbers contradict each other, is an error that names the variable and the launcher. An empty
// variable counts as not set.
//
// # Supervise
//
// [Supervise] starts one process per rank with the GOTRAIN_* contract in its environment and stays with them:
//
//   - all ranks share one process group of their own. When the supervisor dies in any way the kernel kills them, and a guard process kills
//     what they started (Linux);
//   - each rank is bound to its own cores where there are enough of them, and told how many threads to use;
//   - output comes line by line, never mixed within a line, with "[rank 1] " in front for every rank but 0. A console that is closed, full or paused
//     never ends a run: up to 16 MiB wait for a slow reader, then lines are dropped, and a note says how many ([Stream]);
//   - requests to end are passed on (below), TSTP stops all ranks with the supervisor and CONT lets them go on, USR2 is passed on;
//   - when a rank fails the others get TERM, and after a grace time the group is killed;
//   - the first failure is the error that comes back: rank, host, process, exit code or signal, its last lines. A rank that
//     gave up because a peer was gone is never called first when another one failed by itself.
//
// # Requests to end
//
// SIGINT and SIGTERM are requests to end; those that come within a second count as one.
//
//	first     is passed on: trainers stop after the step under way, save, and exit with 75
//	second    is passed on: trainers abandon the step under way, save the last complete one, and exit with 75
//	third     kills the ranks; the supervisor exits with 128+n
//
// SIGHUP is a first request and nothing after that. SIGUSR1 is passed on and counts for nothing: schedulers send it as an early warning. SIGQUIT is passed
// on and the exit code is 131; a gotrain rank first writes where its goroutines are. When the grace time is over after a first request, the supervisor makes
// the second by itself, and kills after another grace time. A rank that said it is [Busy], as trainers do while they save, is waited for.
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
