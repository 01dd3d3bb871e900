package launch

import (
	"math"
	"strconv"
	"strings"
)

// source is one launcher: how to detect it and how to read its variables.
type source struct {
	name    string
	present func(r *reader) bool
	read    func(r *reader, id *Identity)
}

// sources lists the launchers in order of precedence.
var sources = []source{
	{SourceGotrain, anyOf("GOTRAIN_RANK", "GOTRAIN_WORLD_SIZE", "GOTRAIN_LOCAL_RANK", "GOTRAIN_LOCAL_WORLD_SIZE"), readGotrain},
	{SourceTorchrun, presentTorchrun, readTorchrun},
	{SourceOpenMPI, anyOf("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), readOpenMPI},
	{SourcePMI, presentPMI, readPMI},
	{SourceSlurm, presentSlurm, readSlurm},
}

func anyOf(names ...string) func(*reader) bool {
	return func(r *reader) bool {
		for _, n := range names {
			if r.has(n) {
				return true
			}
		}
		return false
	}
}

func readGotrain(r *reader, id *Identity) {
	id.Rank, id.World = r.need("GOTRAIN_RANK"), r.needSize("GOTRAIN_WORLD_SIZE")
	id.LocalRank, id.LocalWorld = r.need("GOTRAIN_LOCAL_RANK"), r.needSize("GOTRAIN_LOCAL_WORLD_SIZE")
	id.NodeRank, id.Nodes = r.opt("GOTRAIN_NODE_RANK", -1), r.opt("GOTRAIN_NODES", -1)
	id.Restart = r.opt("GOTRAIN_RESTART", 0)
}

// presentTorchrun is true for torchrun's ranks, and for the pods of operators, which use the same names or those of its options.
func presentTorchrun(r *reader) bool {
	return anyOf("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK")(r)
}

func readTorchrun(r *reader, id *Identity) {
	// Operators of Kubernetes start one process a pod: such a process is a supervisor, not a rank.
	if p, ok := podOf(r); ok || r.err != nil {
		r.fail("LOCAL_RANK", p.why()+", and is not one of them", podHint)
		return
	}
	id.Rank, id.World = r.need("RANK"), r.needSize("WORLD_SIZE")
	size := "LOCAL_WORLD_SIZE"
	if !r.has(size) && r.has("NPROC_PER_NODE") {
		size = "NPROC_PER_NODE"
	}
	if !r.has("LOCAL_RANK") && r.has(size) {
		byHand(r, id, size)
		return
	}
	r.hint = "start one process per device with torchrun, mpirun or hcclrun; or set LOCAL_WORLD_SIZE to the number of ranks on each machine if RANK " +
		"counts ranks (1 if each pod is one rank)"
	id.LocalRank = r.need("LOCAL_RANK")
	r.hint = ""
	id.LocalWorld = r.opt(size, 0)
	if id.LocalWorld == 0 && r.err == nil {
		if r.has(size) || r.opt("GROUP_WORLD_SIZE", 1) != 1 {
			r.needSize(size)
			return
		}
		id.LocalWorld = id.World // set by hand for one machine
	}
	id.NodeRank, id.Nodes = r.opt("GROUP_RANK", -1), r.opt("GROUP_WORLD_SIZE", -1)
	id.Restart = r.opt("TORCHELASTIC_RESTART_COUNT", 0)
	if r.has("MASTER_ADDR") && !r.has("MASTER_PORT") {
		r.need("MASTER_PORT")
	}
}

// byHand derives the numbers within a machine from the rank: each machine but the last has the same number of ranks, one after the other.
func byHand(r *reader, id *Identity, size string) {
	each := r.needSize(size)
	if r.err != nil {
		return
	}
	id.NodeRank, id.LocalRank = id.Rank/each, id.Rank%each
	id.Nodes = (id.World + each - 1) / each
	id.LocalWorld = min(each, id.World-id.NodeRank*each)
	if id.LocalWorld < 1 {
		id.LocalWorld = each // the rank is out of range, and will be refused
	}
}

func readOpenMPI(r *reader, id *Identity) {
	id.Rank, id.World = r.need("OMPI_COMM_WORLD_RANK"), r.needSize("OMPI_COMM_WORLD_SIZE")
	id.LocalRank, id.LocalWorld = r.need("OMPI_COMM_WORLD_LOCAL_RANK"), r.needSize("OMPI_COMM_WORLD_LOCAL_SIZE")
	if id.LocalWorld < id.World {
		id.NodeRank = daemon(r)
	}
}

// daemon returns the number of mpirun's daemon on this machine, from the address of its PMIx server ("1901789184.1;tcp4://…" or "prterun-h-7@0.1;tcp4://…").
// It tells machines apart, but does not count them: a daemon may have no ranks. -1 if it is not known.
func daemon(r *reader) int {
	for _, name := range []string{"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21", "PMIX_SERVER_URI2"} {
		who, _, _ := strings.Cut(r.str(name), ";")
		if n, err := strconv.Atoi(who[strings.LastIndexByte(who, '.')+1:]); err == nil && n >= 0 && n < maxWorld && strings.Contains(who, ".") {
			return n
		}
	}
	return -1
}

// presentPMI is false if srun itself speaks PMI without local ranks: readSlurm handles that case.
func presentPMI(r *reader) bool {
	if !r.has("PMI_RANK") && !r.has("PMI_SIZE") {
		return false
	}
	return r.has("MPI_LOCALRANKID") || r.has("PMI_LOCAL_RANK") || !r.has("SLURM_PROCID")
}

func readPMI(r *reader, id *Identity) {
	id.Rank, id.World = r.need("PMI_RANK"), r.needSize("PMI_SIZE")
	if r.has("PMI_LOCAL_RANK") && !r.has("MPI_LOCALRANKID") {
		id.LocalRank, id.LocalWorld = r.need("PMI_LOCAL_RANK"), r.needSize("PMI_LOCAL_SIZE")
		return
	}
	id.LocalRank, id.LocalWorld = r.need("MPI_LOCALRANKID"), r.needSize("MPI_LOCALNRANKS")
}

// maxRanks bounds the value of a variable, so that a wrong one cannot cause huge allocations.
const maxRanks = math.MaxInt32
