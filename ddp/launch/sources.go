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
	{SourceTorchrun, anyOf("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"), readTorchrun},
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

func readTorchrun(r *reader, id *Identity) {
	// Kubernetes operators set RANK per pod and LOCAL_RANK to a list, or omit it: such a process is a pod, not a rank.
	const pod = "this looks like one process per pod; start one process per device with torchrun, mpirun or hcclrun, " +
		"or set LOCAL_RANK=0 and LOCAL_WORLD_SIZE=1 if each pod is one rank"
	if v := r.str("LOCAL_RANK"); strings.Contains(v, ",") {
		r.fail("LOCAL_RANK", "a list ("+v+"), not one number", pod)
		return
	}
	id.Rank, id.World = r.need("RANK"), r.needSize("WORLD_SIZE")
	r.hint = pod
	id.LocalRank = r.need("LOCAL_RANK")
	r.hint = ""
	id.LocalWorld = r.opt("LOCAL_WORLD_SIZE", 0)
	if id.LocalWorld == 0 && r.err == nil {
		if r.has("LOCAL_WORLD_SIZE") || r.opt("GROUP_WORLD_SIZE", 1) != 1 {
			r.needSize("LOCAL_WORLD_SIZE")
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

func readOpenMPI(r *reader, id *Identity) {
	id.Rank, id.World = r.need("OMPI_COMM_WORLD_RANK"), r.needSize("OMPI_COMM_WORLD_SIZE")
	id.LocalRank, id.LocalWorld = r.need("OMPI_COMM_WORLD_LOCAL_RANK"), r.needSize("OMPI_COMM_WORLD_LOCAL_SIZE")
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

// presentSlurm is true only inside an srun step: the shell of sbatch also has SLURM_PROCID=0 and SLURM_NTASKS=n, but is not a rank.
func presentSlurm(r *reader) bool {
	return r.has("SLURM_PROCID") && (r.has("SLURM_STEP_ID") || r.has("SLURM_STEPID")) && r.str("SLURM_STEP_NUM_TASKS") != "1"
}

func readSlurm(r *reader, id *Identity) {
	id.Rank = r.need("SLURM_PROCID")
	switch {
	case r.has("SLURM_STEP_NUM_TASKS"):
		id.World = r.needSize("SLURM_STEP_NUM_TASKS")
	default:
		id.World = r.needSize("SLURM_NTASKS")
	}
	id.LocalRank, id.NodeRank = r.need("SLURM_LOCALID"), r.need("SLURM_NODEID")
	tasks := "SLURM_STEP_TASKS_PER_NODE"
	if !r.has(tasks) {
		tasks = "SLURM_TASKS_PER_NODE"
	}
	if !r.has(tasks) {
		r.need(tasks)
		return
	}
	counts, ok := tasksPerNode(r.str(tasks))
	if !ok {
		r.fail(tasks, "cannot read \""+r.str(tasks)+"\"", "it should look like 4(x2),2")
		return
	}
	id.Nodes = len(counts)
	if r.err == nil {
		if id.NodeRank >= len(counts) {
			r.fail("SLURM_NODEID", strconv.Itoa(id.NodeRank)+" is not below the number of nodes in "+tasks+"="+r.str(tasks), "")
			return
		}
		id.LocalWorld = counts[id.NodeRank]
	}
	id.Restart = r.opt("SLURM_RESTART_COUNT", 0)
	nodes := r.str("SLURM_STEP_NODELIST")
	if nodes == "" {
		nodes = r.str("SLURM_JOB_NODELIST")
	}
	id.MasterAddr = firstHost(nodes)
}

// tasksPerNode expands "4(x2),2" to 4, 4, 2.
func tasksPerNode(s string) ([]int, bool) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		num, rep, found := strings.Cut(part, "(x")
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 {
			return nil, false
		}
		times := 1
		if found {
			times, err = strconv.Atoi(strings.TrimSuffix(rep, ")"))
			if err != nil || times < 1 || !strings.HasSuffix(rep, ")") || times+len(out) > 1<<20 {
				return nil, false
			}
		}
		for range times {
			out = append(out, n)
		}
	}
	return out, true
}

// firstHost returns the first host of a Slurm node list: "node[03-05,9],x" → "node03".
func firstHost(list string) string {
	i := strings.IndexAny(list, "[,")
	if i < 0 {
		return list
	}
	if list[i] == ',' {
		return list[:i]
	}
	end := strings.IndexByte(list[i:], ']')
	if end < 0 {
		return ""
	}
	first := list[i+1 : i+end]
	if j := strings.IndexAny(first, "-,"); j >= 0 {
		first = first[:j]
	}
	rest := list[i+end+1:]
	if j := strings.IndexByte(rest, ','); j >= 0 {
		rest = rest[:j]
	}
	return list[:i] + first + rest
}

// maxRanks bounds the value of a variable, so that a wrong one cannot cause huge allocations.
const maxRanks = math.MaxInt32
