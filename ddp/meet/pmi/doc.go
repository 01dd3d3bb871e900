// Package pmi exchanges a few words between the ranks of a job through PMI-1, the protocol of the launchers of MPICH (Hydra) and Intel MPI, which srun
// --mpi=pmi2 speaks too. It needs no MPI library: the launcher leaves the number of an open connection in PMI_FD, and the protocol is lines of text.
//
//	c, err := pmi.Open(os.LookupEnv)
//	err = c.Put(ctx, "gotrain-0", "10.0.0.1:41823")  // one rank
//	err = c.Barrier(ctx)                             // all ranks
//	v, err := c.Get(ctx, "gotrain-0")                // any rank
//	err = c.Close()
//
// What is put becomes visible by the barrier. Close says good-bye to the launcher: without it, a launcher takes the end of the process for a crash and
// ends the job. There can be one connection in a process, because the launcher has one descriptor for it.
package pmi
