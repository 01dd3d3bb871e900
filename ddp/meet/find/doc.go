// Package find finds out where the ranks of a job meet, and which secret they share.
//
// [Where] looks at these places, in this order, and takes the first:
//
//	GOTRAIN_MASTER_ADDR, GOTRAIN_MASTER_PORT   address of rank 0; the port is 29500 if it is not given
//	GOTRAIN_RENDEZVOUS                         file:///shared/folder or file:///shared/file: rank 0 writes its address there
//	MASTER_ADDR, MASTER_PORT                   of torchrun, of operators in Kubernetes, or set by hand
//	PET_RDZV_ENDPOINT                          host:port, as --rdzv_endpoint of torchrun
//	PMI_FD                                     PMI-1: mpirun of MPICH and Intel MPI, srun --mpi=pmi2
//	PMIX_NAMESPACE                             PMIx: mpirun of Open MPI, srun --mpi=pmix
//	SLURM_STEP_NODELIST                        the first host of the step; port 20000 + job id modulo 10000
//	one machine                                a file in a folder of this user
//
// If there is none, the error lists them.
//
// # The port of torchrun
//
// Where torchrun serves its own store on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True), that port is taken. Rank 0 then listens 100 above it: 29600
// instead of 29500.
//
// # The token
//
// A token is a secret that every rank must know before anything it says is believed. It comes from GOTRAIN_JOB_TOKEN, which hcclrun sets, or from the file
// that GOTRAIN_TOKEN_FILE names and that only its owner may read. With PMI, PMIx and a file, rank 0 makes one and publishes it beside its address.
// Otherwise the place is open, and a run warns once: only mistakes, not strangers, are kept out.
//
// # Files
//
// A file of a rendezvous has mode 0600 and appears by a rename. It carries the name and the generation of the job; one of another job or of an older
// generation is ignored, and one of another user is refused. Rank 0 removes it as soon as all ranks have come.
package find
