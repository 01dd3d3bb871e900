// Package launch tells a process of a distributed job which rank it is, and starts and supervises the ranks of a job on
// this machine when no other launcher did.
//
// # Who am I
//
// [WhoAmI] reads the environment variables that launchers set and returns an [Identity]. It checks these launchers, in this order:
//
//	gotrain      GOTRAIN_RANK, GOTRAIN_WORLD_SIZE, GOTRAIN_LOCAL_RANK, GOTRAIN_LOCAL_WORLD_SIZE, …
//	torchrun     RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_*;
//	             by hand, LOCAL_RANK may be left out where LOCAL_WORLD_SIZE (or NPROC_PER_NODE) is given: ranks are counted machine by machine
//	Open MPI     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE, PMIX_NAMESPACE
//	MPICH/Hydra  PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS (Intel MPI too)
//	Slurm        SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURM_NODEID, … inside an srun step
//
// If none is present, the process runs alone. GOTRAIN_LAUNCHER=none forces that, whatever variables are set; the name of a source selects that
// source. The first launcher with any of its variables set wins. An incomplete set, or numbers that contradict each other, is an
// error that names the variable and the launcher. An empty variable counts as not set.
//
// Operators of Kubernetes start one process a machine and leave it to that process to start the ranks: the Ascend operator, PyTorchJob, Volcano. Such a
// process is no rank. [PodOf] recognises it, [Pod.Place] makes its part of the job out of a [Job], and WhoAmI returns an error.
//
// Where several machines have different numbers of ranks, a rank cannot know how many machines there are unless the launcher says it (torchrun and
// Slurm do, mpirun does not). Then Nodes is -1, and the ranks find out when they meet.
//
// # Supervise
//
// [Supervise] starts one process per rank, with the GOTRAIN_* variables in its environment, and supervises them:
//
//   - all ranks share a separate process group. However the supervisor dies, the kernel kills the ranks, and a guard process kills
//     the processes they started (Linux);
//   - each rank is bound to its own cores if there are enough, and is given a number of threads;
//   - output is passed on in whole lines, with the prefix "[rank 1] " for every rank but 0. A console that is closed, full or paused
//     never ends a run: up to 16 MiB is buffered for a slow reader, then lines are dropped, and a note gives their number ([Stream]);
//   - stop requests are passed on (below); TSTP suspends the ranks and the supervisor, CONT resumes them; USR2 is passed on;
//   - when a rank fails, the others receive TERM, and the group is killed after a grace period;
//   - the returned error describes the first failure: rank, host, process, exit code or signal, and the last lines of its output. A rank that
//     gave up because a peer was gone is never reported as first if another rank failed on its own.
//
// # Several hosts
//
// The ranks of a job are on one or more hosts ([Job].Hosts). A [Host] starts ranks and passes signals on, and tells the supervisor of output, records and ends
// ([Events]); *[Local] is this machine, and package remote has those that are reached through an agent. All decisions are made in one place, the supervisor:
// when the others are asked to end, who failed first, when all start again. Clocks of hosts differ, so failures are ordered by when they were heard of, less
// their age by the clock of their host. A host that cannot be reached any more is lost, and counts as the failure of its ranks.
//
// A supervisor may also have one part of a job, where each machine has one of its own: [Job].World, First, NodeRank and Nodes place its ranks.
//
// # Restarts
//
// With [Job].Restarts, all ranks are started again after a failure, after 1, 2, 4 … 60 s, with GOTRAIN_RESTART counting the starts; after an hour without a
// failure, all restarts are available again. Failures that would come back are not retried: usage, data, numerics, recipe (64, 66, 76, 78).
//
// # Stop requests
//
// SIGINT and SIGTERM are stop requests; those within one second count as one.
//
//	first     is passed on: trainers stop after the current step, save, and exit with 75
//	second    is passed on: trainers abandon the current step, save the last complete one, and exit with 75
//	third     kills the ranks; the supervisor exits with 128+n
//
// SIGHUP counts as a first request only. SIGUSR1 is passed on but does not count: schedulers send it as an early warning. SIGQUIT is passed
// on and the exit code is 131; a gotrain rank first prints its goroutine stacks. If the grace period after the first request expires, the supervisor
// makes the second request itself, and kills the ranks after another grace period. It waits for a rank that reported itself [Busy], as trainers do while
// they save.
//
// # Who failed first
//
// A rank that fails records its failure with [Report] before it notifies its peers: time, exit code, reason, and the ranks it blames. An error blames
// ranks when it has a method Blames() []int (those of package ddp/comm do), or by [WithBlame]. An error that another rank caused, but nobody knows which,
// has a method Victim() bool instead. The supervisor compares the records of all ranks: the first failure is the earliest that blames no other rank and is
// no victim. If every record blames a rank, a blamed rank that had to be killed was hung and is reported as first. A program that records nothing is judged
// by when and how it exited; exit code 69 then blames a peer. Package train records failures itself; a custom loop calls Report.
//
// # Exit codes
//
// All exit codes of gotrain are in one table, [Codes]; [ExitCode] returns the code of an error.
package launch
